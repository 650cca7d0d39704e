-- Gives out no turn of a quota for a while, because the provider asked for it.
-- KEYS[1]  the quota, as in reserve.lua
-- ARGV[1]  time between two turns, in us
-- ARGV[2]  turns that may be taken at once
-- ARGV[3]  length of the pause, in us
-- returns  0
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local every, burst, pause = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local used = math.max(tonumber(redis.call('GET', KEYS[1]) or '0'), now + pause + (burst - 1) * every)
redis.call('SET', KEYS[1], string.format('%.0f', used), 'PX', math.ceil((used - now) / 1000) + 1000)
return 0
