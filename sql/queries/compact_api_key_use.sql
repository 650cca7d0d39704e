-- name: compact_api_key_use
-- Merges the rows of api_key_use that replaced each other into the one that counts. Does nothing where that has been done.
OPTIMIZE TABLE api_key_use FINAL SETTINGS optimize_skip_merged_partitions = 1
