-- replay returns the job of an earlier call with the same Idempotency-Key.
-- KEYS: see run.lua and charge.lua
-- ARGV[1] now in ms   ARGV[2] hash of the body   ARGV[3] ms for which it is remembered
-- returns {'unknown'}   there is no such call
--         {'reused'}    it had another body
--         {'replayed', 0, 0, job id, run id, created}
return replay(ARGV[2], tonumber(ARGV[1]), tonumber(ARGV[3]), 0) or {'unknown'}
