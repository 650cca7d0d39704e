-- name: universe_forget
-- Drops the notes of a generation. params: generation UInt64.
ALTER TABLE universe_company DROP PARTITION tuple({generation:UInt64}, 0)
