-- name: account_insert
-- Writes new and changed accounts. The newest row of an account is valid.
INSERT INTO account (id, name, tier, created_at, updated_at)
