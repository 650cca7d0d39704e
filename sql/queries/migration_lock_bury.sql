-- name: migration_lock_bury
-- Removes a lock that was broken. params: grave Identifier.
DROP TABLE IF EXISTS {grave:Identifier}
