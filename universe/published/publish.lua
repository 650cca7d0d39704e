-- publish replaces the published snapshot, unless a later leader has done so.
-- KEYS[1] the snapshot: HASH of blob, fence, epoch and count
-- ARGV[1] blob   ARGV[2] fencing token of the leader   ARGV[3] name of this epoch   ARGV[4] generation and note
-- returns 1, or 0 when a later leader has published
local fence = tonumber(redis.call('HGET', KEYS[1], 'fence') or '0')
if tonumber(ARGV[2]) < fence then return 0 end
redis.call('HSET', KEYS[1], 'blob', ARGV[1], 'fence', ARGV[2], 'epoch', ARGV[3], 'count', ARGV[4])
return 1
