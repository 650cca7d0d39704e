-- Pauses a quota for all workers, as the provider asked.
-- KEYS: see quota.lua
-- ARGV[1]  time between two turns, in us
-- ARGV[2]  burst: turns without a wait
-- ARGV[3]  length of the pause, in us
-- returns  0
local every, burst, pause = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
write_used(math.max(read_used(), now + pause + (burst - 1) * every))
return 0
