-- name: migration_insert
-- Records an applied migration. params: number UInt32, name String, checksum String.
INSERT INTO schema_migration (number, name, checksum) SELECT {number:UInt32}, {name:String}, {checksum:String}
