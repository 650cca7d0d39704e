-- name: trace_values
-- Values of the earlier runs of one company, newest first, up to limit rows.
-- params: domain String, since_ms and before_ms Int64 (unix ms; before_ms itself is left out), limit UInt32.
SELECT scored_at, `value.name`, `value.number`
FROM run_trace
PREWHERE domain = {domain:String}
  AND scored_at >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC')
  AND scored_at < fromUnixTimestamp64Milli({before_ms:Int64}, 'UTC')
ORDER BY scored_at DESC, written_at DESC
LIMIT 1 BY scored_at
LIMIT {limit:UInt32}
SETTINGS max_threads = 1
