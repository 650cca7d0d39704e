-- name: trace_claims
-- Claims of the newest earlier run of one company: 0 or 1 row.
-- params: domain String, since_ms and before_ms Int64 (unix ms; before_ms itself is left out).
SELECT `claim.kind`, `claim.value`, `claim.source`, `claim.via`, `claim.evidence`
FROM run_trace
PREWHERE domain = {domain:String}
  AND scored_at >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC')
  AND scored_at < fromUnixTimestamp64Milli({before_ms:Int64}, 'UTC')
ORDER BY scored_at DESC, written_at DESC
LIMIT 1
SETTINGS max_threads = 1
