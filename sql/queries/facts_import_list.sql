-- name: facts_import_list
-- The newest imports, the newest first. params: limit UInt32.
SELECT import_id, kind, state, origins, recipe, file, digest, started_at, committed_at, finished_at, rows_read, rows_matched, rejected, layers_changed, error
FROM facts_import FINAL
ORDER BY started_at DESC, import_id DESC
LIMIT {limit:UInt32}
