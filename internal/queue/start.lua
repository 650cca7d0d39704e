-- start opens a run for a domain, or joins the one under way.
-- KEYS: see run.lua
-- ARGV[1] domain, ARGV[2] id for a new run, ARGV[3] origin, ARGV[4] now in ms, ARGV[5] ttl in ms
-- returns the run as field, value, ...
return redis.call('HGETALL', RUN .. open_run(ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]))
