-- abort ends an open run for an operator. The worker that holds it stops at its next
-- heartbeat.
-- KEYS: see run.lua
-- ARGV[1] run id, ARGV[2] now in ms
-- returns the previous state: '' if there is no such run; a final state means that
--   nothing changed
local state = redis.call('HGET', RUN .. ARGV[1], 'state')
if is_open(state) then close_run(ARGV[1], 'aborted', ARGV[2], '', '') end
return state or ''
