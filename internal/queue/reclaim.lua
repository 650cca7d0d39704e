-- reclaim requeues runs whose lease has expired, at the front of their lane. A run
-- without attempts left fails.
-- KEYS: see run.lua
-- ARGV[1] now in ms, ARGV[2] maximum attempts of a run, ARGV[3] maximum number of runs, ARGV[4] lease in ms
-- returns for each run: id, new state
local reclaimed = {}
for _, id in ipairs(over(LEASES, ARGV[4], ARGV[3])) do
  local state, attempts = unpack(redis.call('HMGET', RUN .. id, 'state', 'attempts'))
  if state ~= 'running' then
    redis.call('ZREM', LEASES, id) -- it has expired
  else
    if tonumber(attempts) >= tonumber(ARGV[2]) then
      close_run(id, 'failed', ARGV[1], '', 'worker lost in attempt ' .. attempts)
      state = 'failed'
    else
      requeue_run(id)
      state = 'queued'
    end
    reclaimed[#reclaimed + 1] = id
    reclaimed[#reclaimed + 1] = state
  end
end
return reclaimed
