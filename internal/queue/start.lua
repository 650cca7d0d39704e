-- Opens a run that nobody is charged for.
-- KEYS: 1 in-flight STRING of the domain, 2 open runs ZSET
-- ARGV: 1 run key prefix, 2 run id, 3 domain, 4 origin, 5 now (unix ms), 6 expiry (unix ms)
-- Returns {run id, 1 if new}.
local id, new = open_run(KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6])
return {id, new}
