-- heartbeat extends the leases of the attempts of one worker.
-- KEYS: see run.lua
-- ARGV[1] lease in ms, then for each attempt: run id, holder
-- returns the indexes, from 0, of the attempts that must stop: their run has ended or
--   has another holder. An attempt whose run is missing in Redis continues; finish
--   writes the run again.
local stop = {}
local lease_end = clock() + ARGV[1]
for i = 2, #ARGV, 2 do
  local id, holder = ARGV[i], ARGV[i + 1]
  local state, current = unpack(redis.call('HMGET', RUN .. id, 'state', 'holder'))
  if current == holder then
    redis.call('ZADD', LEASES, lease_end, id)
  elseif state then
    stop[#stop + 1] = i / 2 - 1
  end
end
return stop
