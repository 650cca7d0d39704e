-- redeem replaces a sign-in link by a session. It is idempotent per session, since the client may
-- retry a call whose answer it lost.
-- KEYS[1] link     KEYS[2] session
-- ARGV[1] session  ARGV[2] its ttl in ms
-- returns 1, or 0 if there is no such link
if redis.call('EXISTS', KEYS[2]) == 1 then return 1 end
if redis.call('DEL', KEYS[1]) == 0 then return 0 end
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
return 1
