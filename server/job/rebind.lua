-- rebind makes a pending job wait for another run in place of a lost one.
-- KEYS[1] job HASH
-- ARGV[1] lost run, ARGV[2] run to wait for
-- returns 1, or 0 if the job does not exist, is settled, or already waits for another run
if redis.call('HGET', KEYS[1], 'status') ~= 'pending' or redis.call('HGET', KEYS[1], 'run') ~= ARGV[1] then
  return 0
end
redis.call('HSET', KEYS[1], 'run', ARGV[2])
return 1
