-- bulk_admit checks a call for many companies against the limits of admit.lua, in their order, and atomically
-- charges all of its cold calls or, if a part is allowed, as many as all limits have room for. bulk_open then
-- opens the jobs. It is idempotent per id of the call and does nothing for a refunded one.
-- KEYS: see run.lua, charge.lua and bulk.lua
-- ARGV[1] to ARGV[7]: see admit.lua
-- ARGV[8] id of the call   ARGV[9] ms to keep it   ARGV[10] account   ARGV[11] key
-- ARGV[12] hash of the body, '' without an Idempotency-Key   ARGV[13] ms for which it is remembered
-- ARGV[14] 'all', 'part' or 'dry', which changes nothing     ARGV[15] the field calls
-- ARGV[16..] ids of the jobs
-- returns {'unknown'}, {'refunded'} or {'reused'}, see admit.lua
--         {the limit, ms until there is room for all, used, room for so many}
--         {'admitted', 0, used, created, n, calls, limit that refused the rest or '', id of the call}
--         {'replayed', the same}
--         {'dry', 0, used, room for so many, the limit or ''}
local now, id, mode, wanted = tonumber(ARGV[1]), ARGV[8], ARGV[14], #ARGV - 15

local done = redis.call('HMGET', BULKS .. id, 'calls', 'refunded')
if done[2] then return {'refunded'} end

local used = tonumber(redis.call('GET', MONTH))
if not used then return {'unknown'} end

if done[1] then return admission('admitted', used, id) end

if ARGV[12] ~= '' and mode ~= 'dry' then
  local earlier = replay_bulk(ARGV[12], now, tonumber(ARGV[13]), used)
  if earlier then return earlier end
end

local room, limit, wait = wanted, '', 0
local function bound(left, name, until_room)
  left = math.max(left, 0)
  if left < room then
    -- The first limit without room for all is the one to wait for.
    if limit == '' then limit, wait = name, until_room end
    room = left
  end
end
local budget = tonumber(ARGV[2])
if budget >= 0 then bound(budget - used, 'monthly_cap', 0) end
local function window(key, name, n, span)
  local calls = calls_in(key, span, now)
  bound(n - calls, name, calls + wanted > n and wait_for_room(key, calls, wanted, n, span, now) or 0)
end
local key_span, account_span = tonumber(ARGV[5]), tonumber(ARGV[7])
window(KEY_WINDOW, 'per_key_cold_1h', tonumber(ARGV[4]), key_span)
local account_limit = tonumber(ARGV[6])
if account_limit >= 0 then window(ACCOUNT_WINDOW, 'account_cold_24h', account_limit, account_span) end

if mode == 'dry' then return {'dry', wait, used, room, limit} end
if room == 0 or room < wanted and mode == 'all' then return {limit, wait, used, room} end

local members = {}
for i = 16, 15 + room do
  members[#members + 1] = now
  members[#members + 1] = ARGV[i]
end
redis.call('ZADD', KEY_WINDOW, unpack(members))
redis.call('PEXPIRE', KEY_WINDOW, key_span)
if account_limit >= 0 then
  redis.call('ZADD', ACCOUNT_WINDOW, unpack(members))
  redis.call('PEXPIRE', ACCOUNT_WINDOW, account_span)
end
used = redis.call('INCRBY', MONTH, room)
redis.call('PEXPIRE', MONTH, ARGV[3])
redis.call('HSET', BULKS .. id, 'account', ARGV[10], 'key', ARGV[11], 'created', ARGV[1], 'n', room, 'calls', ARGV[15])
if limit ~= '' then redis.call('HSET', BULKS .. id, 'limit', limit) end
redis.call('PEXPIRE', BULKS .. id, ARGV[9])
redis.call('ZADD', OPEN_BULKS, now, id)
if ARGV[12] ~= '' then
  redis.call('DEL', IDEMPOTENCY)
  redis.call('HSET', IDEMPOTENCY, 'body', ARGV[12], 'bulk', id, 'at', ARGV[1])
  redis.call('PEXPIRE', IDEMPOTENCY, ARGV[13])
end
return admission('admitted', used, id)
