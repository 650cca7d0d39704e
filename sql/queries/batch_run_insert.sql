-- name: batch_run_insert
-- Appends runs of cron jobs.
INSERT INTO batch_run (started_at, job, id, fence, took_ms, read_rows, read_bytes, peak_memory_bytes, companies, young, due, started, oldest_scored_at, outcome, error)
