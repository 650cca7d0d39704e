-- name: account_insert
-- Writes an account, new or changed; the newest row counts.
INSERT INTO account (id, name, tier, created_at, updated_at)
