-- Shared part of the scripts that charge cold calls. It stands between run.lua and each of them.
--
-- KEYS[8]  cold calls of the account and month   STRING
-- KEYS[9]  recent cold calls of the key          ZSET of job ids by unix ms
-- KEYS[10] recent cold calls of the account      ZSET of job ids by unix ms
-- KEYS[11] prefix of the jobs; the key of a job is the prefix and its id
-- KEYS[12] answer to an Idempotency-Key          HASH: body, job, run, at
-- KEYS[13] cold calls to copy to the ledger      HASH of JSON by job id
-- Those about many companies have two more, see bulk.lua.
--
-- HASH job: account, key, domain, run, created, status   always set
--           completed, scored, reason   once it is settled; times are unix ms
--           acknowledged   1 after a replay has returned it: it is never refunded
--           refunded       1 and no other field: it was refunded, see refund.lua
local MONTH, KEY_WINDOW, ACCOUNT_WINDOW, JOBS, IDEMPOTENCY, LEDGER = unpack(KEYS, 8, 13)

-- Limit of the calls that wait for the ledger. During a long outage further calls are dropped.
local LEDGER_MOST = 1000000

local function note_for_ledger(id, account, key, domain, run, created, refunded)
  if redis.call('HLEN', LEDGER) < LEDGER_MOST then
    redis.call('HSET', LEDGER, id, cjson.encode({
      account = account, key = key, domain = domain, run = run, at = tostring(created), refunded = refunded,
    }))
  end
end

-- replay returns {'replayed', 0, used, job id, run id, created} for the job that was
-- returned for the Idempotency-Key in the last span ms. It marks the job as acknowledged,
-- if the job still exists. It ignores an answer with a time span ms or more in the future,
-- from before clocks of servers were set back. It returns {'reused'} if the body differs,
-- nil if there is no answer.
local function replay(body, now, span, used)
  local earlier, id, run, at = unpack(redis.call('HMGET', IDEMPOTENCY, 'body', 'job', 'run', 'at'))
  if not earlier or math.abs(now - at) >= span then return nil end
  if earlier ~= body then return {'reused'} end
  if redis.call('EXISTS', JOBS .. id) == 1 then redis.call('HSET', JOBS .. id, 'acknowledged', 1) end
  return {'replayed', 0, used, id, run, at}
end

-- calls_in returns the number of calls in a window. A call leaves a window exactly one span after
-- its time. A call with a time more than one span in the future was made before the clocks of
-- servers were set back. It leaves at once.
local function calls_in(window, span, now)
  redis.call('ZREMRANGEBYSCORE', window, '-inf', now - span)
  redis.call('ZREMRANGEBYSCORE', window, string.format('(%.0f', now + span), '+inf')
  return redis.call('ZCARD', window)
end

-- wait_for_room returns the ms until a window with a number of calls has room for n more, and until
-- it is empty if that is more than the limit.
local function wait_for_room(window, calls, n, limit, span, now)
  local last = math.min(calls + n - limit, calls) - 1
  if last < 0 then return span end
  return redis.call('ZRANGE', window, last, last, 'WITHSCORES')[2] + span - now
end

-- open_job opens or joins the run of a domain and writes a job that waits for it. It returns the id of the run.
local function open_job(job, domain, new_run, account, key, now, ttl)
  local run = open_run(domain, new_run, 'api', account, now, ttl)
  redis.call('HSET', JOBS .. job, 'account', account, 'key', key, 'domain', domain,
    'run', run, 'created', now, 'status', 'pending')
  redis.call('PEXPIRE', JOBS .. job, ttl)
  note_for_ledger(job, account, key, domain, run, now, false)
  return run
end
