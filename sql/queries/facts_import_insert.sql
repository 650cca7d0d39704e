-- name: facts_import_insert
-- Writes the state of imports. Of rows with one id the latest counts.
INSERT INTO facts_import (import_id, kind, state, origins, recipe, file, digest, started_at, committed_at, finished_at, rows_read, rows_matched, rejected, layers_changed, error)
