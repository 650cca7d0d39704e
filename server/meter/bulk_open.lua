-- bulk_open opens some jobs of a call for many companies. It leaves a job that exists, so it may be repeated.
-- It does nothing for a call that is not stored.
-- KEYS: see run.lua, charge.lua and bulk.lua
-- ARGV[1] id of the call   ARGV[2] its account   ARGV[3] its key   ARGV[4] its time in unix ms
-- ARGV[5] ttl of jobs and runs in ms   ARGV[6] '' or, with the last jobs, ms to keep the call
-- ARGV[7..] for each: job id, domain, id for a new run
local call = BULKS .. ARGV[1]
if redis.call('HEXISTS', call, 'calls') == 0 then return 0 end
redis.call('HSET', call, 'begun', 1)
for i = 7, #ARGV, 3 do
  local job, domain, run = unpack(ARGV, i, i + 2)
  if redis.call('EXISTS', JOBS .. job) == 0 then
    open_job(job, domain, run, ARGV[2], ARGV[3], ARGV[4], ARGV[5])
  end
end
if ARGV[6] ~= '' then
  redis.call('ZREM', OPEN_BULKS, ARGV[1])
  redis.call('PEXPIRE', call, ARGV[6])
end
return 1
