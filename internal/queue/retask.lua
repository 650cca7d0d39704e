-- retask gives a queued run a new task when the worker that took the old one
-- died before it began the run.
-- KEYS: see run.lua
-- ARGV[1] run id, ARGV[2] the lost task's id
-- returns the new task id, '' when the run does not wait for that task
local state, task = unpack(redis.call('HMGET', RUN .. ARGV[1], 'state', 'task'))
if state ~= 'queued' or task ~= ARGV[2] then return '' end
return new_task(ARGV[1])
