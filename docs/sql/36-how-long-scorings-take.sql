-- How long does a run take?
-- Runs of the last seven days: lower median and 99th percentile in seconds.
-- 21,501 examples: 1 row.
-- Columns: runs, p50_s, p99_s
SELECT count() AS runs, round(quantileExactLow(0.5)(assumeNotNull(took_ms)) / 1000, 1) AS p50_s, round(quantileExact(0.99)(assumeNotNull(took_ms)) / 1000, 1) AS p99_s
FROM v1_run
WHERE kind = 'score' AND outcome = 'succeeded' AND started_at >= now() - INTERVAL 7 DAY
