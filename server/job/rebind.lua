-- rebind has a pending job wait for another run, since its own was lost.
-- KEYS[1] job HASH
-- ARGV[1] run it waits for, ARGV[2] run to wait for
-- returns 1, or 0 when the job is gone, settled, or waits for another run already
if redis.call('HGET', KEYS[1], 'status') ~= 'pending' or redis.call('HGET', KEYS[1], 'run') ~= ARGV[1] then
  return 0
end
redis.call('HSET', KEYS[1], 'run', ARGV[2])
return 1
