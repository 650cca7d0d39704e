-- Begins an attempt at a run, unless the run is over or another worker is at it.
-- KEYS: 1 run HASH, 2 beats ZSET
-- ARGV: 1 run id, 2 now (unix ms), 3 oldest beat that counts as alive (unix ms), 4 most attempts
-- Returns {"gone"}, {"over"}, {"busy"}, {"spent"} (no attempt is left), or
-- {"begun", domain, origin, created, started, attempts}. started stays that of the first
-- attempt, so that a repeated run makes the same record.
if redis.call('EXISTS', KEYS[1]) == 0 then return {'gone'} end
local state = redis.call('HGET', KEYS[1], 'state')
if state ~= 'queued' and state ~= 'running' then return {'over'} end
local beat = redis.call('ZSCORE', KEYS[2], ARGV[1])
if beat and tonumber(beat) > tonumber(ARGV[3]) then return {'busy'} end
if tonumber(redis.call('HGET', KEYS[1], 'attempts')) >= tonumber(ARGV[4]) then return {'spent'} end
redis.call('ZADD', KEYS[2], ARGV[2], ARGV[1])
redis.call('HSETNX', KEYS[1], 'started', ARGV[2])
redis.call('HSET', KEYS[1], 'state', 'running')
local attempts = redis.call('HINCRBY', KEYS[1], 'attempts', 1)
local run = redis.call('HMGET', KEYS[1], 'domain', 'origin', 'created', 'started')
return {'begun', run[1], run[2], run[3], run[4], attempts}
