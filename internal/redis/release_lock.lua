-- release_lock releases a lock, unless another holder has taken it.
-- KEYS[1] lock HASH, see take_lock.lua
-- ARGV[1] fence of the holder
-- returns 1 if the holder had the lock, else 0
if redis.call('HGET', KEYS[1], 'fence') ~= ARGV[1] then return 0 end
return redis.call('HDEL', KEYS[1], 'ends')
