-- take takes a lock that expires. Redis keeps expiries by its wall clock: one that
-- lies further ahead than the lock is long was set before the clock went back, and
-- counts as over.
-- KEYS[1] lock STRING   ARGV[1] token   ARGV[2] how long in ms
-- returns 1 when it was taken, 0 when it is held
local left = redis.call('PTTL', KEYS[1])
if left >= 0 and left <= tonumber(ARGV[2]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
