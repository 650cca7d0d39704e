-- take_lock takes a lock for a lease. A lease that ends later than one that begins now was taken before the clock
-- of Redis went back, and counts as expired.
-- KEYS[1] lock HASH: fence of the last holder, ends of its lease in unix ms, missing if it has released the lock
-- ARGV[1] lease in ms
-- returns the fence of the new holder, or 0 if the lock is held
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local last = tonumber(redis.call('HGET', KEYS[1], 'fence') or '') or 0
local ends = tonumber(redis.call('HGET', KEYS[1], 'ends') or '') or 0
if ends > now and ends <= now + ARGV[1] then return 0 end
-- Fences are unix ms and only grow, so that no fence repeats after Redis has lost its data.
local fence = math.max(now, last + 1)
redis.call('HSET', KEYS[1], 'fence', string.format('%d', fence), 'ends', string.format('%d', now + ARGV[1]))
return fence
