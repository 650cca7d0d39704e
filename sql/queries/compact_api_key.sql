-- name: compact_api_key
-- Merges replaced rows of api_key. Skips merged partitions.
OPTIMIZE TABLE api_key FINAL SETTINGS optimize_skip_merged_partitions = 1
