-- admit checks a cold call against the monthly budget, then the breaker of the key, then
-- that of the account. If all allow it, it atomically charges the call, opens or joins
-- the run of the domain and writes the job. It is idempotent per job id, since the server
-- may retry a call whose answer it lost. It does nothing for a refunded job.
-- KEYS: see run.lua and charge.lua
-- ARGV[1] now in ms
-- ARGV[2] monthly budget, -1 for unmetered     ARGV[3] ms to keep the month's count
-- ARGV[4] limit of the key                     ARGV[5] its window in ms
-- ARGV[6] limit of the account, -1 for none    ARGV[7] its window in ms
-- ARGV[8] job id    ARGV[9] id for a new run   ARGV[10] ttl of both in ms
-- ARGV[11] account  ARGV[12] key               ARGV[13] domain
-- ARGV[14] hash of the body, '' without an Idempotency-Key   ARGV[15] ms for which it is remembered
-- returns {'unknown'}                   there is no count, it must be restored first
--         {'refunded'}                  the job was refunded before this call arrived
--         {'reused'}                    the Idempotency-Key was used with another body
--         {'monthly_cap', 0, used}
--         {'per_key_cold_1h', ms until there is room, used}
--         {'account_cold_24h', ms until there is room, used}
--         {'admitted' or 'replayed', 0, used, job id, run id, created}
local now, job = tonumber(ARGV[1]), JOBS .. ARGV[8]

local done = redis.call('HMGET', job, 'run', 'created', 'refunded')
if done[3] then return {'refunded'} end

local used = tonumber(redis.call('GET', MONTH))
if not used then return {'unknown'} end

if done[1] then return {'admitted', 0, used, ARGV[8], done[1], done[2]} end

if ARGV[14] ~= '' then
  local earlier = replay(ARGV[14], now, tonumber(ARGV[15]), used)
  if earlier then return earlier end
end

local budget = tonumber(ARGV[2])
if budget >= 0 and used >= budget then return {'monthly_cap', 0, used} end

local key_limit, key_span = tonumber(ARGV[4]), tonumber(ARGV[5])
local account_limit, account_span = tonumber(ARGV[6]), tonumber(ARGV[7])
local calls = calls_in(KEY_WINDOW, key_span, now)
if calls >= key_limit then
  return {'per_key_cold_1h', wait_for_room(KEY_WINDOW, calls, 1, key_limit, key_span, now), used}
end
if account_limit >= 0 then
  calls = calls_in(ACCOUNT_WINDOW, account_span, now)
  if calls >= account_limit then
    return {'account_cold_24h', wait_for_room(ACCOUNT_WINDOW, calls, 1, account_limit, account_span, now), used}
  end
  redis.call('ZADD', ACCOUNT_WINDOW, now, ARGV[8])
  redis.call('PEXPIRE', ACCOUNT_WINDOW, account_span)
end
redis.call('ZADD', KEY_WINDOW, now, ARGV[8])
redis.call('PEXPIRE', KEY_WINDOW, key_span)
used = redis.call('INCR', MONTH)
redis.call('PEXPIRE', MONTH, ARGV[3])

local run = open_job(ARGV[8], ARGV[13], ARGV[9], ARGV[11], ARGV[12], ARGV[1], ARGV[10])
if ARGV[14] ~= '' then
  redis.call('DEL', IDEMPOTENCY)
  redis.call('HSET', IDEMPOTENCY, 'body', ARGV[14], 'job', ARGV[8], 'run', run, 'at', ARGV[1])
  redis.call('PEXPIRE', IDEMPOTENCY, ARGV[15])
end
return {'admitted', 0, used, ARGV[8], run, ARGV[1]}
