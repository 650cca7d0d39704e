-- name: account_get
-- One account: 0 or 1 row. params: id String.
SELECT id, name, tier, created_at FROM account FINAL WHERE id = {id:String}
SETTINGS max_threads = 1
