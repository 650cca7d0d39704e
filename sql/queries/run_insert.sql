-- name: run_insert
-- Writes what became of runs; the row that got furthest counts.
INSERT INTO run_log (created_at, id, domain, state, lane, started_at, finished_at, scored_at, attempts, error, revision)
