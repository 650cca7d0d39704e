-- name: migration_list
-- Migrations that were applied, by number. columns: number, name, checksum.
SELECT number, name, checksum FROM schema_migration FINAL ORDER BY number
