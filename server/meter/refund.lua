-- refund undoes a cold call whose outcome the server does not know: the charge, the
-- job, and the run unless somebody else waits for it or it is being worked on. A job
-- that a replay has answered with stays, and so does its charge.
--
-- The scripts may arrive in any order and more than once. A refunded job id is
-- remembered, so that its admission charges nothing when it arrives later.
-- KEYS: see run.lua and charge.lua
-- ARGV[1] job id   ARGV[2] ms for which a refund is remembered
-- returns 1 if a charge was undone, else 0
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
