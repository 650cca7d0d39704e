-- name: compact_account
-- Merges the rows of account that replaced each other into the one that counts. Does nothing where that has been done.
OPTIMIZE TABLE account FINAL SETTINGS optimize_skip_merged_partitions = 1
