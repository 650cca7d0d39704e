-- name: migration_lock_break
-- Takes the lock away from a holder that died. Of several that try, one succeeds: the new name is taken then.
-- params: grave Identifier.
RENAME TABLE schema_lock TO {grave:Identifier}
