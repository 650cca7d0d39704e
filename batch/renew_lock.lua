-- Extends the lease of a lock if the token still holds it.
-- KEYS: 1 lock STRING   ARGV: 1 token, 2 lease in milliseconds
-- Returns 1 if the token held it, else 0.
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 0
