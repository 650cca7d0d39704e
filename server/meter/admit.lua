-- Admits a cold call: checks the monthly budget, then the breaker of the key, then
-- that of the account; if all allow it, counts it, opens or shares the run of the
-- domain and writes the job. Called again with the same job id it answers the same.
-- KEYS: 1 month counter STRING, 2 key window ZSET, 3 account window ZSET, 4 job HASH,
--       5 in-flight STRING of the domain, 6 open runs ZSET
-- ARGV: 1 now (unix ms), 2 monthly budget (-1: unmetered), 3 key limit, 4 key window (ms),
--       5 account limit (-1: none), 6 account window (ms), 7 expiry of the month counter (unix ms),
--       8 job id, 9 run id to use if the domain has none under way, 10 account id, 11 key id,
--       12 domain, 13 expiry of job and run (unix ms), 14 run key prefix
-- Returns {"admitted", run id, 1 if the run is new, cold calls of the month},
--   {"monthly_cap"}, {"per_key_cold_1h", ms until there is room}, {"account_cold_24h", ms},
--   or {"unknown"} when the month counter is not there and must be rebuilt first.
local now = tonumber(ARGV[1])

local function room_after(window, limit, span)
  redis.call('ZREMRANGEBYSCORE', window, '-inf', now - span)
  local count = redis.call('ZCARD', window)
  if limit < 0 or count < limit then return 0 end
  if limit == 0 then return span end
  local entry = redis.call('ZRANGE', window, count - limit, count - limit, 'WITHSCORES')
  return tonumber(entry[2]) + span - now
end

local run = redis.call('HGET', KEYS[4], 'run')
local used = tonumber(redis.call('GET', KEYS[1]))
if run then return {'admitted', run, 0, used or 0} end
if not used then return {'unknown'} end

local budget = tonumber(ARGV[2])
if budget >= 0 and used >= budget then return {'monthly_cap'} end
local wait = room_after(KEYS[2], tonumber(ARGV[3]), tonumber(ARGV[4]))
if wait > 0 then return {'per_key_cold_1h', wait} end
wait = room_after(KEYS[3], tonumber(ARGV[5]), tonumber(ARGV[6]))
if wait > 0 then return {'account_cold_24h', wait} end

used = redis.call('INCR', KEYS[1])
redis.call('PEXPIREAT', KEYS[1], ARGV[7])
redis.call('ZADD', KEYS[2], now, ARGV[8])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
redis.call('ZADD', KEYS[3], now, ARGV[8])
redis.call('PEXPIRE', KEYS[3], ARGV[6])
local id, new = open_run(KEYS[5], KEYS[6], ARGV[14], ARGV[9], ARGV[12], 'api', now, ARGV[13])
redis.call('HSET', KEYS[4], 'account', ARGV[10], 'key', ARGV[11], 'domain', ARGV[12], 'run', id, 'created', now, 'status', 'pending')
redis.call('PEXPIREAT', KEYS[4], ARGV[13])
return {'admitted', id, new, used}
