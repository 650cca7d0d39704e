-- name: universe_untouch
-- Drops the touched records of a batch. params: note UInt64.
ALTER TABLE universe_touched DROP PARTITION {note:UInt64}
