-- name: compact_api_key_use
-- Merges replaced rows of api_key_use. Skips merged partitions.
OPTIMIZE TABLE api_key_use FINAL SETTINGS optimize_skip_merged_partitions = 1
