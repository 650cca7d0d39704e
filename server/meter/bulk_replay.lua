-- bulk_replay returns the earlier call for many companies with the same Idempotency-Key.
-- KEYS: see run.lua, charge.lua and bulk.lua
-- ARGV[1] now in ms   ARGV[2] hash of the body   ARGV[3] ms for which it is remembered
-- returns {'unknown'}   there is no such call
--         {'reused'} or {'replayed', ...}, see bulk_admit.lua
return replay_bulk(ARGV[2], tonumber(ARGV[1]), tonumber(ARGV[3]), 0) or {'unknown'}
