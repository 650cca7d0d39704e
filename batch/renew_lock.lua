-- Keeps a lock for a while longer, if it is still ours.
-- KEYS: 1 lock STRING   ARGV: 1 token, 2 how long in milliseconds
-- Returns 1 if it was ours.
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 0
