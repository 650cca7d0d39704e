-- name: universe_touched_count
-- How many records a batch touched, 1 row. params: note UInt64.
SELECT count() AS records FROM universe_touched WHERE note = {note:UInt64}
