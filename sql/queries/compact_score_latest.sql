-- name: compact_score_latest
-- Merges the rows of score_latest that replaced each other into the one that counts.
OPTIMIZE TABLE score_latest FINAL
