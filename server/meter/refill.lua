-- refill restores missing counts of cold calls in Redis, at the start of a month or after
-- Redis lost data. It does not change existing counts.
-- KEYS[1] cold calls of the account and month, KEYS[2] recent calls of the account,
-- KEYS[3] prefix of the recent calls of a key; the key is the prefix and the key's id
-- ARGV[1] the count, ARGV[2] ms to keep it, ARGV[3] window of the account in ms,
-- ARGV[4] window of a key in ms, then for each recent call: job id, key id, unix ms
-- returns 1 if it restored the counts, 0 if they exist
if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 0 end
for i = 5, #ARGV, 3 do
  local window = KEYS[3] .. ARGV[i + 1]
  redis.call('ZADD', KEYS[2], ARGV[i + 2], ARGV[i])
  redis.call('PEXPIRE', KEYS[2], ARGV[3])
  redis.call('ZADD', window, ARGV[i + 2], ARGV[i])
  redis.call('PEXPIRE', window, ARGV[4])
end
return 1
