-- Takes the next turn at a provider that all workers ask together.
-- KEYS[1]  the quota: STRING, the instant in us at which the turns given out are
--          used up (the theoretical arrival time of the generic cell rate algorithm)
-- ARGV[1]  time between two turns, in us
-- ARGV[2]  turns that may be taken at once
-- ARGV[3]  longest wait accepted, in us
-- returns  the wait before the turn in us, or -1 - wait when it is too long and no
--          turn was taken
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local every, burst, patience = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local used = math.max(tonumber(redis.call('GET', KEYS[1]) or '0'), now)
local wait = math.max(0, used - (burst - 1) * every - now)
if wait > patience then
  return -1 - wait
end
redis.call('SET', KEYS[1], string.format('%.0f', used + every), 'PX', math.ceil((used + every - now) / 1000) + 1000)
return wait
