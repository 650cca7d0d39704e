-- Releases a lock if the token still holds it.
-- KEYS: 1 lock STRING   ARGV: 1 token
-- Returns 1 if the token held it, else 0.
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
