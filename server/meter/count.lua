-- count adds one flush of cached calls of a server to the count of a month. It adds each
-- flush once: a server resends a flush whose answer was lost.
-- KEYS[1] cached calls of the account and month, HASH: count, and per server its last flush
-- ARGV[1] calls, ARGV[2] the server, ARGV[3] number of the flush, ARGV[4] ms to keep the count
-- returns 1, or 0 if there is no count and it must be restored first
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
if tonumber(redis.call('HGET', KEYS[1], ARGV[2]) or 0) < tonumber(ARGV[3]) then
  redis.call('HINCRBY', KEYS[1], 'count', ARGV[1])
  redis.call('HSET', KEYS[1], ARGV[2], ARGV[3])
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
end
return 1
