-- name: score_last
-- When the newest of all records was scored: 1970 when nothing is stored. Parts know the range of scored_at, the column of the partition
-- key, so no row is read however many there are. One row.
SELECT max(scored_at) AS scored_at FROM score_history
