-- Ends a run, or gives an attempt back so that another can follow.
-- KEYS: 1 run HASH, 2 in-flight STRING of the domain, 3 open runs ZSET, 4 beats ZSET
-- ARGV: 1 run id, 2 new state ("queued" gives the attempt back), 3 now (unix ms),
--       4 scored_at (unix ms, "" for none), 5 error, 6 "1" if the attempt shall not count
-- Returns 1, or 0 when the run was over already: the first end of a run stays.
redis.call('ZREM', KEYS[4], ARGV[1])
local state = redis.call('HGET', KEYS[1], 'state')
if state ~= 'queued' and state ~= 'running' then return 0 end
redis.call('HSET', KEYS[1], 'state', ARGV[2], 'error', ARGV[5])
if ARGV[2] == 'queued' then
  if ARGV[6] == '1' then redis.call('HINCRBY', KEYS[1], 'attempts', -1) end
  return 1
end
redis.call('HSET', KEYS[1], 'finished', ARGV[3])
if ARGV[4] ~= '' then redis.call('HSET', KEYS[1], 'scored', ARGV[4]) end
redis.call('ZREM', KEYS[3], ARGV[1])
if redis.call('GET', KEYS[2]) == ARGV[1] then redis.call('DEL', KEYS[2]) end
return 1
