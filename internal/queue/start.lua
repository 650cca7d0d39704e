-- start opens a run for each domain, or joins its open run.
-- KEYS: see run.lua
-- ARGV[1] lane, ARGV[2] owner, ARGV[3] now in ms, ARGV[4] ttl in ms,
-- ARGV[5..] for each domain: the domain, id for a new run
-- returns the ids of the runs
local ids = {}
for i = 5, #ARGV, 2 do
  ids[#ids + 1] = open_run(ARGV[i], ARGV[i + 1], ARGV[1], ARGV[2], ARGV[3], ARGV[4])
end
return ids
