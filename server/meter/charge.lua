-- Shared part of admit.lua, replay.lua and refund.lua. It stands between run.lua and each of them.
--
-- KEYS[8]  cold calls of the account and month   STRING
-- KEYS[9]  recent cold calls of the key          ZSET of job ids by unix ms
-- KEYS[10] recent cold calls of the account      ZSET of job ids by unix ms
-- KEYS[11] prefix of the jobs; the key of a job is the prefix and its id
-- KEYS[12] answer to an Idempotency-Key          HASH: body, job, run, at
-- KEYS[13] cold calls to copy to the ledger      HASH of JSON by job id
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
