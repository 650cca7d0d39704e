-- Takes back the charge of a call whose start failed. Harmless when it was never
-- charged, or was refunded already. The run stays: others may wait for it.
-- KEYS: 1 month counter STRING, 2 key window ZSET, 3 account window ZSET, 4 job HASH
-- ARGV: 1 job id
-- Returns 1 if a charge was taken back.
if redis.call('DEL', KEYS[4]) == 0 then return 0 end
redis.call('DECR', KEYS[1])
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1])
return 1
