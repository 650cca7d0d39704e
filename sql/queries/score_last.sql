-- name: score_last
-- Largest scored_at of all records, 1970-01-01 without records. Parts store the range of scored_at, the column of the partition key, so
-- the query reads no rows. One row.
SELECT max(scored_at) AS scored_at FROM score_history
