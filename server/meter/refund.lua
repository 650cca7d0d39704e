-- refund removes the charge and the job of a cold call with an unknown outcome. It also
-- removes the run if it is queued and no other job waits for it. An acknowledged job stays,
-- with its charge.
--
-- The scripts may arrive in any order and more than once. A refunded job id is kept, so a
-- later admission of it charges nothing.
-- KEYS: see run.lua and charge.lua
-- ARGV[1] job id   ARGV[2] ms to keep the id of a refunded job
-- returns 1 if it removed a charge, else 0
local job = JOBS .. ARGV[1]
local account, key, domain, run, created, acknowledged =
  unpack(redis.call('HMGET', job, 'account', 'key', 'domain', 'run', 'created', 'acknowledged'))
if acknowledged then return 0 end
redis.call('DEL', job)
redis.call('HSET', job, 'refunded', 1)
redis.call('PEXPIRE', job, ARGV[2])
if not run then return 0 end

if tonumber(redis.call('GET', MONTH) or 0) > 0 then redis.call('DECR', MONTH) end
redis.call('ZREM', KEY_WINDOW, ARGV[1])
redis.call('ZREM', ACCOUNT_WINDOW, ARGV[1])
if redis.call('HGET', IDEMPOTENCY, 'job') == ARGV[1] then redis.call('DEL', IDEMPOTENCY) end
note_for_ledger(ARGV[1], account, key, domain, run, created, true)

local state = redis.call('HGET', RUN .. run, 'state')
if is_open(state) then
  local waiters = redis.call('HINCRBY', RUN .. run, 'waiters', -1)
  if waiters <= 0 and state == 'queued' then
    unlist_run(run)
    redis.call('DEL', RUN .. run)
  end
end
return 1
