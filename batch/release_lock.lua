-- Gives a lock back, if it is still ours.
-- KEYS: 1 lock STRING   ARGV: 1 token
-- Returns 1 if it was ours.
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
