-- open_run finds the run that is under way for a domain, or opens a new one.
-- It is put in front of the scripts that call it. All keys share one slot.
--   inflight, open   keys: run under way of the domain; set of runs that are not final
--   run_prefix       beginning of the key of every run
--   id, domain, origin, now_ms, expire_ms   of the run to open
-- Returns the id of the run, and 1 if it was opened just now. A run lives at
-- least until expire_ms, so that it outlives every job that waits for it.
local function open_run(inflight, open, run_prefix, id, domain, origin, now_ms, expire_ms)
  local current = redis.call('GET', inflight)
  if current and redis.call('EXISTS', run_prefix .. current) == 1 then
    redis.call('PEXPIREAT', run_prefix .. current, expire_ms, 'GT')
    return current, 0
  end
  redis.call('SET', inflight, id)
  redis.call('PEXPIREAT', inflight, expire_ms)
  redis.call('HSET', run_prefix .. id, 'domain', domain, 'origin', origin, 'state', 'queued', 'created', now_ms, 'attempts', 0)
  redis.call('PEXPIREAT', run_prefix .. id, expire_ms)
  redis.call('ZADD', open, now_ms, id)
  return id, 1
end
