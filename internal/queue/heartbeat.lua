-- heartbeat extends the leases of the attempts of one worker.
-- KEYS: see run.lua
-- ARGV[1] lease in ms, then for each attempt: run id, holder, and its sources: done, total (0 if not known)
-- returns the indexes, from 0, of the attempts that must stop: their run has ended or
--   has another holder. An attempt whose run is missing in Redis continues; finish
--   writes the run again.
local stop = {}
local lease_end = clock() + ARGV[1]
for i = 2, #ARGV, 4 do
  local id, holder, done, total = unpack(ARGV, i, i + 3)
  local state, current = unpack(redis.call('HMGET', RUN .. id, 'state', 'holder'))
  if current == holder then
    redis.call('ZADD', LEASES, lease_end, id)
    if total ~= '0' then redis.call('HSET', RUN .. id, 'done', done, 'total', total) end
  elseif state then
    stop[#stop + 1] = (i - 2) / 4
  end
end
return stop
