-- name: key_use_insert
-- Notes when keys were last used.
INSERT INTO api_key_use (key_id, last_used_at)
