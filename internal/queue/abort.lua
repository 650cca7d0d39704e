-- abort ends an open run on behalf of an operator, or because its task was
-- given up. A worker that holds it learns that from its next heartbeat.
-- KEYS: see run.lua
-- ARGV[1] run id, ARGV[2] final state, ARGV[3] now in ms, ARGV[4] error or ''
-- returns {state before, task id}; the state is '' when there is no such run,
--   and final when there was nothing to end
local state, task = unpack(redis.call('HMGET', RUN .. ARGV[1], 'state', 'task'))
if is_open(state) then close_run(ARGV[1], ARGV[2], ARGV[3], '', ARGV[4]) end
return {state or '', task or ''}
