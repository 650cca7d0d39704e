-- Why do runs fail?
-- Runs of the last seven days without a record, by outcome and error.
-- 21,501 examples: no rows, as no run of facts alone fails.
-- Columns: outcome, error, runs
SELECT outcome, error, count() AS runs
FROM v1_run
WHERE kind = 'score' AND outcome IN ('failed', 'timed_out', 'aborted') AND started_at >= now() - INTERVAL 7 DAY
GROUP BY outcome, error
ORDER BY runs DESC, outcome, error
