-- name: compact_api_key
-- Merges the rows of api_key that replaced each other into the one that counts. Does nothing where that has been done.
OPTIMIZE TABLE api_key FINAL SETTINGS optimize_skip_merged_partitions = 1
