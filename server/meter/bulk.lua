-- Shared part of the scripts about calls for many companies. It stands between charge.lua and each of them.
--
-- Such a call is charged by one script, which is fast, and its runs and jobs are opened by further ones. So
-- Redis is never blocked for long. Between them the call is in OPEN_BULKS. A server that ends meanwhile leaves
-- it there, and any server opens the rest.
--
-- KEYS[14] prefix of the calls; the key of a call is the prefix and its id
-- KEYS[15] calls whose jobs are not all opened    ZSET of ids by unix ms
--
-- HASH call: account, key, created, n, calls   always set. calls is a JSON list of {job id, domain, id for a new
--                     run}; the first n of it are charged
--            limit    the limit that refused the rest of calls, absent if n is all of them
--            begun    1 once jobs are opened: it is never refunded
--            refunded 1 and no other field: it was refunded, see bulk_refund.lua
-- HASH IDEMPOTENCY of such a call: body, bulk (its id), at
local BULKS, OPEN_BULKS = unpack(KEYS, 14, 15)

-- admission returns {outcome, 0, used, created, n, calls, limit, id} of a call.
local function admission(outcome, used, id)
  local created, n, calls, limit = unpack(redis.call('HMGET', BULKS .. id, 'created', 'n', 'calls', 'limit'))
  return {outcome, 0, used, created, n, calls, limit or '', id}
end

-- replay_bulk is replay for such a call. It returns nil too if the call has expired.
local function replay_bulk(body, now, span, used)
  local earlier, id, at = unpack(redis.call('HMGET', IDEMPOTENCY, 'body', 'bulk', 'at'))
  if not earlier or math.abs(now - at) >= span then return nil end
  if earlier ~= body then return {'reused'} end
  if redis.call('HEXISTS', BULKS .. id, 'calls') == 0 then return nil end
  redis.call('HSET', BULKS .. id, 'begun', 1)
  return admission('replayed', used, id)
end
