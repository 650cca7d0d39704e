-- name: score_count
-- How many records are stored, those written twice counted twice. One row.
SELECT count() AS records FROM score_history
