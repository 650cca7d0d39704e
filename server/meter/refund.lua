-- refund takes back a cold call whose start failed: the charge, the job, and the
-- run unless somebody else waits for it or it is being worked on. Refunding a call
-- that was never charged, or twice, does nothing.
-- KEYS: see run.lua and charge.lua
-- ARGV[1] job id
-- returns 1 if a charge was taken back, else 0
local account, key, domain, run, created =
  unpack(redis.call('HMGET', JOB, 'account', 'key', 'domain', 'run', 'created'))
if not run then return 0 end
redis.call('DEL', JOB)
if tonumber(redis.call('GET', MONTH) or 0) > 0 then redis.call('DECR', MONTH) end
redis.call('ZREM', KEY_WINDOW, ARGV[1])
redis.call('ZREM', ACCOUNT_WINDOW, ARGV[1])
if redis.call('HGET', IDEMPOTENCY, 'job') == ARGV[1] then redis.call('DEL', IDEMPOTENCY) end
note_for_ledger(ARGV[1], account, key, domain, run, created, true)

local state = redis.call('HGET', RUN .. run, 'state')
if is_open(state) then
  local waiters = redis.call('HINCRBY', RUN .. run, 'waiters', -1)
  if waiters <= 0 and state == 'queued' then
    unlist_run(run, domain)
    redis.call('DEL', RUN .. run)
  end
end
return 1
