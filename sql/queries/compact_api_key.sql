-- name: compact_api_key
-- Merges the rows of api_key that replaced each other into the one that counts.
OPTIMIZE TABLE api_key FINAL
