-- name: source_health
-- Answers and failures by source in the newest successful runs since an instant, at most runs of them. The traces are read by their key.
-- params: since_ms Int64, runs UInt32. columns: source, asked, answered, mean_ms, failures (the most frequent failures).
SELECT
    name AS source, count() AS asked, countIf(outcome = 'answered') AS answered, toFloat64(avg(took_ms)) AS mean_ms,
    topKIf(3)(toString(outcome), outcome != 'answered') AS failures
FROM run_trace
ARRAY JOIN `source.name` AS name, `source.outcome` AS outcome, `source.took_ms` AS took_ms
WHERE (domain, scored_at) IN
(
    SELECT domain, scored_at
    FROM run_log
    WHERE created_at >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC') AND state = 'succeeded'
    ORDER BY created_at DESC
    LIMIT {runs:UInt32}
)
GROUP BY source
ORDER BY source
