-- name: migration_list
-- Applied migrations by number. columns: number, name, checksum.
SELECT number, name, checksum FROM schema_migration FINAL ORDER BY number
