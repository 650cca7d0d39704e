-- release puts a run back for its task to begin again.
-- KEYS: see run.lua
-- ARGV[1] run id, ARGV[2] holder, ARGV[3] error or '', ARGV[4] 1 if the attempt counts, else 0
-- returns 1 if the holder had the run, else 0
local key = RUN .. ARGV[1]
if redis.call('HGET', key, 'holder') ~= ARGV[2] then return 0 end
redis.call('HSET', key, 'state', 'queued')
redis.call('HDEL', key, 'holder')
redis.call('ZREM', LEASES, ARGV[1])
if ARGV[3] ~= '' then redis.call('HSET', key, 'error', ARGV[3]) end
if ARGV[4] == '0' then redis.call('HINCRBY', key, 'attempts', -1) end
return 1
