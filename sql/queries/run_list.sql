-- name: run_list
-- Newest runs of the run log. params: limit UInt32.
SELECT created_at, id, domain, state, lane, started_at, finished_at, scored_at, attempts, error
FROM run_log FINAL
ORDER BY created_at DESC, id DESC
LIMIT {limit:UInt32}
