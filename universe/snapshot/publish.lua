-- publish replaces one part of the published snapshot, unless a larger fence has published it.
-- KEYS[1] the snapshot: HASH of revision and, for each part, PART, PART_fence, PART_from and PART_before
-- ARGV[1] part, counts or movers   ARGV[2] blob   ARGV[3] fencing token of the leader
-- ARGV[4] epoch in ms: servers adopt the part at a multiple of it; 0 for at once   ARGV[5] minimum time until then in ms
-- returns the revision, or 0 if a larger fence has published. Within the minimum time before an instant, what
-- waits for that instant stays, and the call changes nothing: a later run publishes again.
local part = ARGV[1]
-- number returns a field, 0 if it is missing or damaged.
local function number(field) return tonumber(redis.call('HGET', KEYS[1], field) or '') or 0 end
if tonumber(ARGV[3]) < number(part .. '_fence') then return 0 end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local from, epoch = 0, tonumber(ARGV[4])
local newest = redis.call('HGET', KEYS[1], part)
if epoch > 0 and newest then
	from = math.ceil((now + ARGV[5]) / epoch) * epoch
	local waits = number(part .. '_from')
	if waits <= now then
		redis.call('HSET', KEYS[1], part .. '_before', newest) -- servers use it until then
	elseif waits < from then
		return number('revision')
	end
else
	redis.call('HDEL', KEYS[1], part .. '_before')
end
-- Revisions are unix ms and only grow, so that no revision repeats after Redis has lost its data.
local revision = math.max(now, number('revision') + 1)
redis.call('HSET', KEYS[1], part, ARGV[2], part .. '_fence', ARGV[3], part .. '_from', string.format('%d', from), 'revision', string.format('%d', revision))
return revision
