-- abort ends an open run on behalf of an operator. A worker that holds it learns that
-- from its next heartbeat.
-- KEYS: see run.lua
-- ARGV[1] run id, ARGV[2] now in ms
-- returns the state before: '' when there is no such run, and a final one when there
--   was nothing to end
local state = redis.call('HGET', RUN .. ARGV[1], 'state')
if is_open(state) then close_run(ARGV[1], 'aborted', ARGV[2], '', '') end
return state or ''
