-- name: migration_lock_beat
-- Shows that the holder of the lock lives.
INSERT INTO schema_lock SELECT now64(3)
