-- settle settles a pending job. It does not change a settled job.
-- KEYS: 1 job HASH
-- ARGV: 1 status, 2 completed (unix ms), 3 scored_at (unix ms or ""), 4 failure reason or ""
-- Returns all fields of the job, empty if the job does not exist.
if redis.call('HGET', KEYS[1], 'status') == 'pending' then
  redis.call('HSET', KEYS[1], 'status', ARGV[1], 'completed', ARGV[2], 'scored', ARGV[3], 'reason', ARGV[4])
end
return redis.call('HGETALL', KEYS[1])
