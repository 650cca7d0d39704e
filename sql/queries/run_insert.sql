-- name: run_insert
-- Appends runs to the run log. The row with the largest revision of a run is valid.
INSERT INTO run_log (created_at, id, domain, state, lane, started_at, finished_at, scored_at, attempts, error, revision)
