-- settle settles pending jobs. It does not change a settled job.
-- KEYS: job HASHes
-- ARGV: for each: 1 status, 2 completed (unix ms), 3 scored_at (unix ms or ""), 4 failure reason or ""
-- Returns the fields of each job, empty for a job that does not exist.
local jobs = {}
for i, key in ipairs(KEYS) do
  if redis.call('HGET', key, 'status') == 'pending' then
    local status, completed, scored, reason = unpack(ARGV, 4 * i - 3, 4 * i)
    redis.call('HSET', key, 'status', status, 'completed', completed, 'scored', scored, 'reason', reason)
  end
  jobs[i] = redis.call('HGETALL', key)
end
return jobs
