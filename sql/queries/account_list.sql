-- name: account_list
-- All accounts, oldest first.
SELECT id, name, tier, created_at FROM account FINAL ORDER BY created_at, id
