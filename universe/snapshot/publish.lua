-- publish replaces one part of the published snapshot, unless a larger fence has published it.
-- KEYS[1] the snapshot: HASH of counts, counts_fence, movers, movers_fence and epoch
-- ARGV[1] part, counts or movers   ARGV[2] blob   ARGV[3] fencing token of the leader
-- returns the epoch, or 0 if a larger fence has published
local fence = ARGV[1] .. '_fence'
if tonumber(ARGV[3]) < tonumber(redis.call('HGET', KEYS[1], fence) or '0') then return 0 end
-- Epochs are unix ms and only grow, so that no epoch repeats after Redis has lost its data.
local now = redis.call('TIME')
local epoch = math.max(now[1] * 1000 + math.floor(now[2] / 1000), tonumber(redis.call('HGET', KEYS[1], 'epoch') or '0') + 1)
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2], fence, ARGV[3], 'epoch', string.format('%d', epoch))
return epoch
