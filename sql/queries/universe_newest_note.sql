-- name: universe_newest_note
-- The largest number that a note of a generation has, 0 when it has none, 1 row. params: generation UInt64.
SELECT max(position) AS note FROM universe_company WHERE generation = {generation:UInt64}
