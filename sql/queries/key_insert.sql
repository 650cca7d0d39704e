-- name: key_insert
-- Writes new and revoked keys. A revoked row replaces the row that created the key.
INSERT INTO api_key (id, account_id, name, prefix, mode, hash, created_at, revoked_at)
