-- name: migration_lock_take
-- Takes the lock of the migrator; fails with TABLE_ALREADY_EXISTS (57) while another holds it.
CREATE TABLE schema_lock
(
    beat_at DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'When the holder showed that it lives'
)
ENGINE = MergeTree
ORDER BY beat_at
COMMENT 'Exists while a migrator is at work.'
