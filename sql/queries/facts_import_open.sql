-- name: facts_import_open
-- Imports that were committed and not finished, oldest first.
SELECT import_id, kind, state, origins, recipe, file, digest, started_at, committed_at, finished_at, rows_read, rows_matched, rejected, layers_changed, error
FROM facts_import FINAL
WHERE state = 'committed'
ORDER BY committed_at
