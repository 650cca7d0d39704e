-- publish replaces one part of the published snapshot, unless a later leader has done so.
-- KEYS[1] the snapshot: HASH of counts, counts_fence, movers, movers_fence and epoch
-- ARGV[1] part, counts or movers   ARGV[2] blob   ARGV[3] fencing token of the leader
-- returns the epoch, or 0 when a later leader has published
local fence = ARGV[1] .. '_fence'
if tonumber(ARGV[3]) < tonumber(redis.call('HGET', KEYS[1], fence) or '0') then return 0 end
-- Epochs are unix ms that only grow, so that a Redis that was emptied gives none a second time.
local now = redis.call('TIME')
local epoch = math.max(now[1] * 1000 + math.floor(now[2] / 1000), tonumber(redis.call('HGET', KEYS[1], 'epoch') or '0') + 1)
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2], fence, ARGV[3], 'epoch', string.format('%d', epoch))
return epoch
