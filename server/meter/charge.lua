-- What the scripts that charge and refund share; put between run.lua and each of them.
--
-- KEYS[6]  cold calls of the account and month   STRING
-- KEYS[7]  recent cold calls of the key          ZSET of job ids by unix ms
-- KEYS[8]  recent cold calls of the account      ZSET of job ids by unix ms
-- KEYS[9]  the job                               HASH: account, key, domain, run, created, status,
--          and once it is settled: completed, scored, reason; times are unix ms
-- KEYS[10] what an Idempotency-Key was answered  HASH: body, job, run, at
-- KEYS[11] cold calls to copy to the ledger      HASH of JSON by job id
local MONTH, KEY_WINDOW, ACCOUNT_WINDOW, JOB, IDEMPOTENCY, LEDGER =
  KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11]

-- The ledger may be away for long; beyond this many calls it misses some.
local LEDGER_MOST = 1000000

local function note_for_ledger(id, account, key, domain, run, created, refunded)
  if redis.call('HLEN', LEDGER) < LEDGER_MOST then
    redis.call('HSET', LEDGER, id, cjson.encode({
      account = account, key = key, domain = domain, run = run, at = tostring(created), refunded = refunded,
    }))
  end
end
