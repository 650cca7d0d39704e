-- name: score_count
-- Number of stored records, including copies that are not merged yet. One row.
SELECT count() AS records FROM score_history
