-- finish ends runs. Only the first end of a run counts. A success with a record counts
-- from any attempt, since all attempts write the same record. A failure, or a success
-- without a record, counts only from the attempt that holds the run. A refresh may
-- succeed without a record. If a caller joined it meanwhile, the run has left the
-- refresh lane and is queued again, to write a record.
-- KEYS: see run.lua
-- ARGV[1] now in ms, ARGV[2] ttl in ms, ARGV[3..] for each run: id, holder, final state,
-- scored_at in ms or '', error or '', and their values at the claim: domain, lane,
-- created_at, attempts, started_at
-- returns the number of runs that this call ended
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
