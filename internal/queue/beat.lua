-- Says that a worker is still at its runs, and asks which of them are over.
-- KEYS: 1 beats ZSET, 2.. run HASHes
-- ARGV: 1 now (unix ms), 2.. run ids, in the order of the keys
-- Returns the ids of runs that ended meanwhile, by an abort or elsewhere.
local over = {}
for i = 2, #KEYS do
  local state = redis.call('HGET', KEYS[i], 'state')
  if state == 'running' then
    redis.call('ZADD', KEYS[1], ARGV[1], ARGV[i])
  else
    over[#over + 1] = ARGV[i]
  end
end
return over
