-- copied removes copied calls from the list for the ledger, unless they changed since.
-- KEYS[1] cold calls to copy, HASH of JSON by job id
-- ARGV[..] for each call: job id, the JSON that was copied
for i = 1, #ARGV, 2 do
  if redis.call('HGET', KEYS[1], ARGV[i]) == ARGV[i + 1] then
    redis.call('HDEL', KEYS[1], ARGV[i])
  end
end
return redis.status_reply('OK')
