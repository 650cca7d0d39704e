-- name: compact_score_latest
-- Merges replaced rows of score_latest. Skips merged partitions.
OPTIMIZE TABLE score_latest FINAL SETTINGS optimize_skip_merged_partitions = 1
