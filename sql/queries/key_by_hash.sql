-- name: key_by_hash
-- The key with a hash: 0 or 1 row. params: hash String (hex).
SELECT id, account_id, name, prefix, mode, hash, created_at, revoked_at FROM api_key FINAL WHERE hash = {hash:String}
SETTINGS max_threads = 1
