-- name: migration_lock_drop
-- Gives the lock back.
DROP TABLE schema_lock
