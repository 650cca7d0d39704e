-- name: key_by_id
-- The key with an id: 0 or 1 row. params: id String.
SELECT id, account_id, name, prefix, mode, hash, created_at, revoked_at FROM api_key FINAL WHERE id = {id:String}
SETTINGS max_threads = 1
