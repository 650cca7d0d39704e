-- scan looks at one page of the open runs, oldest first.
-- KEYS: see run.lua
-- ARGV[1] runs to pass over, ARGV[2] size of the page, ARGV[3] unix ms: later runs are left alone
-- returns {runs seen, run id, task id, ...} with the queued ones. Entries whose run has
--   expired are dropped; a running one that nobody leases is given an expired lease.
local ids = redis.call('ZRANGE', OPEN, '-inf', ARGV[3], 'BYSCORE', 'LIMIT', ARGV[1], ARGV[2])
local found = {#ids}
for _, id in ipairs(ids) do
  local state, task = unpack(redis.call('HMGET', RUN .. id, 'state', 'task'))
  if not is_open(state) then
    redis.call('ZREM', OPEN, id)
  elseif state == 'queued' then
    found[#found + 1] = id
    found[#found + 1] = task
  elseif not redis.call('ZSCORE', LEASES, id) then
    redis.call('ZADD', LEASES, 0, id)
  end
end
return found
