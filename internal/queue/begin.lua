-- begin starts an attempt at a run and takes the lease. Beginning twice with one
-- holder is beginning once, since a client may repeat a call whose answer it lost.
-- KEYS: see run.lua
-- ARGV[1] run id, ARGV[2] task id, ARGV[3] holder, ARGV[4] now in ms, ARGV[5] lease in ms
-- returns {} when this task must not begin the run: the run is gone or ended,
--   another attempt works on it, or a later task took the place of this one;
--   else the run as field, value, ...
local key = RUN .. ARGV[1]
local state, task, holder = unpack(redis.call('HMGET', key, 'state', 'task', 'holder'))
if not is_open(state) or task ~= ARGV[2] then return {} end
if state == 'running' and holder ~= ARGV[3] then return {} end
if holder ~= ARGV[3] then
  redis.call('HINCRBY', key, 'attempts', 1)
  redis.call('HSETNX', key, 'started_at', ARGV[4])
  redis.call('HSET', key, 'state', 'running', 'holder', ARGV[3])
  redis.call('ZADD', LEASES, clock() + ARGV[5], ARGV[1])
end
return redis.call('HGETALL', key)
