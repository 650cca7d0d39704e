-- name: key_insert
-- Writes a key, new or revoked; a revoked row beats the one that created the key.
INSERT INTO api_key (id, account_id, name, prefix, mode, hash, created_at, revoked_at)
