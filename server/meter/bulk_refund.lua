-- bulk_refund removes the charges of a call for many companies with an unknown outcome. A call whose jobs are
-- being opened stays. See refund.lua.
-- KEYS: see run.lua, charge.lua and bulk.lua
-- ARGV[1] id of the call   ARGV[2] ms to keep the id of a refunded one
-- returns the number of charges that it removed
local id = ARGV[1]
local n, calls, begun = unpack(redis.call('HMGET', BULKS .. id, 'n', 'calls', 'begun'))
if begun then return 0 end
redis.call('DEL', BULKS .. id)
redis.call('HSET', BULKS .. id, 'refunded', 1)
redis.call('PEXPIRE', BULKS .. id, ARGV[2])
redis.call('ZREM', OPEN_BULKS, id)
if not calls then return 0 end

n = tonumber(n)
local left = tonumber(redis.call('GET', MONTH) or 0)
if left > 0 then redis.call('DECRBY', MONTH, math.min(n, left)) end
local jobs = {}
for i, call in ipairs(cjson.decode(calls)) do
  if i <= n then jobs[i] = call[1] end
end
redis.call('ZREM', KEY_WINDOW, unpack(jobs))
redis.call('ZREM', ACCOUNT_WINDOW, unpack(jobs))
if redis.call('HGET', IDEMPOTENCY, 'bulk') == id then redis.call('DEL', IDEMPOTENCY) end
return n
