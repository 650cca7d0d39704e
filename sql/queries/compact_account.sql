-- name: compact_account
-- Merges replaced rows of account. Skips merged partitions.
OPTIMIZE TABLE account FINAL SETTINGS optimize_skip_merged_partitions = 1
