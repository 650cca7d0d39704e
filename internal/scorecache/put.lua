-- put stores the newest score of a company. A score of the same time replaces the stored
-- one, since a repeated run writes the same record again.
-- KEYS[1] the score: STRING of 16 digits of unix ms, then JSON
-- ARGV[1] unix ms of the record   ARGV[2] value   ARGV[3] ttl in ms
-- returns 1 if the value was stored, 0 if a newer one exists
local kept = tonumber(redis.call('GETRANGE', KEYS[1], 0, 15))
if kept and kept > tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1
