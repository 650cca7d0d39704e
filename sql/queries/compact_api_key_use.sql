-- name: compact_api_key_use
-- Merges the rows of api_key_use that replaced each other into the one that counts.
OPTIMIZE TABLE api_key_use FINAL
