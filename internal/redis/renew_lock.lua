-- renew_lock begins a new lease of a lock, unless another holder has taken it.
-- KEYS[1] lock HASH, see take_lock.lua
-- ARGV[1] fence of the holder   ARGV[2] lease in ms
-- returns 1 if the holder has the lock, else 0
local held = redis.call('HMGET', KEYS[1], 'fence', 'ends')
if held[1] ~= ARGV[1] or not held[2] then return 0 end
local time = redis.call('TIME')
redis.call('HSET', KEYS[1], 'ends', string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[2]))
return 1
