-- name: compact_score_latest
-- Merges the rows of score_latest that replaced each other into the one that counts. Does nothing where that has been done.
OPTIMIZE TABLE score_latest FINAL SETTINGS optimize_skip_merged_partitions = 1
