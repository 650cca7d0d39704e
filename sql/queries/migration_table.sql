-- name: migration_table
-- Creates the table of applied migrations.
CREATE TABLE IF NOT EXISTS schema_migration
(
    number UInt32 COMMENT 'Number of the migration',
    name String COMMENT 'File name without .sql',
    checksum String COMMENT 'SHA-256 of its text in hex',
    applied_at DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'When it was first applied'
)
ENGINE = ReplacingMergeTree
ORDER BY number
COMMENT 'Applied migrations of this schema.'
