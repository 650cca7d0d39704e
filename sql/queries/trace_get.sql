-- name: trace_get
-- Trace of the run that made one record: 0 or 1 row. Of several attempts, the trace written last.
-- params: domain String, at_ms Int64 (scored_at of the record, unix ms).
SELECT
    domain, scored_at, run_id, `source.name`, `source.outcome`, `source.took_ms`,
    `observation.signal`, `observation.source`, `observation.state`, `observation.raw`, `observation.reason`,
    `value.name`, `value.number`, `claim.kind`, `claim.value`, `claim.source`, `claim.via`, `claim.evidence`
FROM run_trace
PREWHERE domain = {domain:String} AND scored_at = fromUnixTimestamp64Milli({at_ms:Int64}, 'UTC')
ORDER BY written_at DESC
LIMIT 1
SETTINGS max_threads = 1
