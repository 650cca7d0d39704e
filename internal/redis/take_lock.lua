-- take takes a lock that expires. Redis measures expiries by its wall clock. An expiry
-- further ahead than the length of the lock was set before the clock went back, and
-- counts as expired.
-- KEYS[1] lock STRING   ARGV[1] token   ARGV[2] length in ms
-- returns 1 if the lock was taken, 0 if it is held
local left = redis.call('PTTL', KEYS[1])
if left >= 0 and left <= tonumber(ARGV[2]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
