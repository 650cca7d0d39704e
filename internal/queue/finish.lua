-- finish ends runs. The first end counts. A success counts from any attempt, since
-- its record is written and all attempts write the same one; a failure counts only
-- from the attempt that holds the run, and so does a success without a record, which a
-- refresh may have. When somebody else asked for the run meanwhile it has left the
-- refresh lane, in which it was claimed, and is done once more for the record.
-- KEYS: see run.lua
-- ARGV[1] now in ms, ARGV[2] ttl in ms, ARGV[3..] for each run: id, holder, final state,
-- scored_at in ms or '', error or '', and as they were when it was claimed: domain,
-- lane, created_at, attempts, started_at
-- returns how many of the runs this call ended
local ended = 0
for i = 3, #ARGV, 10 do
  local id, holder, state, scored_at, message, domain, lane, created, attempts, started = unpack(ARGV, i, i + 9)
  local key = RUN .. id
  local current, current_holder = unpack(redis.call('HMGET', key, 'state', 'holder'))
  if not current then
    redis.call('HSET', key, 'domain', domain, 'lane', lane, 'owner', '', 'state', 'running',
      'created_at', created, 'attempts', attempts, 'started_at', started)
    redis.call('PEXPIRE', key, ARGV[2])
    current, current_holder = 'running', holder
  end
  local bare = state == 'succeeded' and scored_at == ''
  if bare and current == 'running' and current_holder == holder and lane == 'refresh' and redis.call('HGET', key, 'lane') ~= lane then
    redis.call('HINCRBY', key, 'attempts', -1)
    requeue_run(id)
  elseif is_open(current) and (current_holder == holder or state == 'succeeded' and not bare) then
    close_run(id, state, ARGV[1], scored_at, message)
    ended = ended + 1
  end
end
return ended
