-- Reserves the next turn of a quota that all workers share.
-- KEYS: see quota.lua
-- ARGV[1]  time between two turns, in us
-- ARGV[2]  burst: turns without a wait
-- ARGV[3]  longest accepted wait, in us
-- returns  the wait before the turn in us, or -1 - wait if it is longer than ARGV[3];
--          no turn is reserved then
local every, burst, wait_max = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local used = read_used()
local wait = math.max(0, used - (burst - 1) * every - now)
if wait > wait_max then
  return -1 - wait
end
write_used(used + every)
return wait
