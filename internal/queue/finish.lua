-- finish ends a run. The first end counts. A success counts from any attempt,
-- since its record is written and all attempts write the same one; a failure
-- counts only from the attempt that holds the run.
-- KEYS: see run.lua
-- ARGV[1] run id, ARGV[2] holder, ARGV[3] final state, ARGV[4] now in ms,
-- ARGV[5] scored_at in ms or '', ARGV[6] error, ARGV[7] ttl in ms,
-- ARGV[8..] the run as field, value, ... for the case that Redis has lost it
-- returns 1 if this call ended the run, else 0
local id, key = ARGV[1], RUN .. ARGV[1]
local state, holder = unpack(redis.call('HMGET', key, 'state', 'holder'))
if not state then
  redis.call('HSET', key, unpack(ARGV, 8))
  redis.call('PEXPIRE', key, ARGV[7])
elseif not is_open(state) then
  return 0
elseif holder ~= ARGV[2] and ARGV[3] ~= 'succeeded' then
  return 0
end
close_run(id, ARGV[3], ARGV[4], ARGV[5], ARGV[6])
return 1
