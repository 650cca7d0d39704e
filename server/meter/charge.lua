-- What the scripts that charge, replay and refund share; put between run.lua and each of them.
--
-- KEYS[8]  cold calls of the account and month   STRING
-- KEYS[9]  recent cold calls of the key          ZSET of job ids by unix ms
-- KEYS[10] recent cold calls of the account      ZSET of job ids by unix ms
-- KEYS[11] prefix of the jobs; the key of a job is the prefix and its id
-- KEYS[12] what an Idempotency-Key was answered  HASH: body, job, run, at
-- KEYS[13] cold calls to copy to the ledger      HASH of JSON by job id
--
-- HASH job: account, key, domain, run, created, status   always there
--           completed, scored, reason   once it is settled; times are unix ms
--           acknowledged   1 once a replay has answered with it: it is never refunded
--           refunded       1, and nothing else: it was refunded, see refund.lua
local MONTH, KEY_WINDOW, ACCOUNT_WINDOW, JOBS, IDEMPOTENCY, LEDGER = unpack(KEYS, 8, 13)

-- The ledger may be away for long; beyond this many calls it misses some.
local LEDGER_MOST = 1000000

local function note_for_ledger(id, account, key, domain, run, created, refunded)
  if redis.call('HLEN', LEDGER) < LEDGER_MOST then
    redis.call('HSET', LEDGER, id, cjson.encode({
      account = account, key = key, domain = domain, run = run, at = tostring(created), refunded = refunded,
    }))
  end
end

-- replay returns {'replayed', 0, used, job id, run id, created} for the job that the
-- Idempotency-Key was answered with in the last span ms, and marks it, since the
-- caller is about to learn of it. (A time that lies further ahead is one from before
-- the servers' clocks went back.) It returns {'reused'} when the body was another,
-- and nil when there is no such job.
local function replay(body, now, span, used)
  local earlier, id, run, at = unpack(redis.call('HMGET', IDEMPOTENCY, 'body', 'job', 'run', 'at'))
  if not earlier or math.abs(now - at) >= span then return nil end
  if earlier ~= body then return {'reused'} end
  if redis.call('EXISTS', JOBS .. id) == 1 then redis.call('HSET', JOBS .. id, 'acknowledged', 1) end
  return {'replayed', 0, used, id, run, at}
end
