-- Takes the next turn at a provider that all workers ask together.
-- KEYS: see quota.lua
-- ARGV[1]  time between two turns, in us
-- ARGV[2]  turns that may be taken at once
-- ARGV[3]  longest wait accepted, in us
-- returns  the wait before the turn in us, or -1 - wait when it is too long and no
--          turn was taken
local every, burst, patience = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local used = read_used()
local wait = math.max(0, used - (burst - 1) * every - now)
if wait > patience then
  return -1 - wait
end
write_used(used + every)
return wait
