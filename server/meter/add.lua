-- Adds to a counter that exists.
-- KEYS: 1 counter STRING   ARGV: 1 how much, 2 expiry (unix ms)
-- Returns the new total, or -1 when there is no counter and it must be rebuilt first.
if redis.call('EXISTS', KEYS[1]) == 0 then return -1 end
redis.call('PEXPIREAT', KEYS[1], ARGV[2])
return redis.call('INCRBY', KEYS[1], ARGV[1])
