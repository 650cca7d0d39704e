-- name: key_use_insert
-- Appends the times of the last uses of keys.
INSERT INTO api_key_use (key_id, last_used_at)
