-- reclaim takes runs away from workers whose lease is over. A run that has had
-- all its attempts fails; the others get a new task, which the caller enqueues.
-- KEYS: see run.lua
-- ARGV[1] now in ms, ARGV[2] most attempts of a run, ARGV[3] most runs to reclaim
-- returns run id, task id, ...; the task id is '' for a run that failed
local reclaimed = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', LEASES, '-inf', clock(), 'LIMIT', 0, ARGV[3])) do
  local state, attempts = unpack(redis.call('HMGET', RUN .. id, 'state', 'attempts'))
  if state ~= 'running' then
    redis.call('ZREM', LEASES, id)
  else
    local task = ''
    if tonumber(attempts) >= tonumber(ARGV[2]) then
      close_run(id, 'failed', ARGV[1], '', 'worker lost in attempt ' .. attempts)
    else
      task = new_task(id)
    end
    reclaimed[#reclaimed + 1] = id
    reclaimed[#reclaimed + 1] = task
  end
end
return reclaimed
