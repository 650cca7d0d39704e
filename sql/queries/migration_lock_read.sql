-- name: migration_lock_read
-- Who holds the lock: 0 or 1 row. columns: made_s UInt32 (Unix time of its making, which names it), silent_ms Int64 (since
-- the holder last showed that it lives, by the server's clock).
SELECT
    toUnixTimestamp(metadata_modification_time) AS made_s,
    dateDiff('millisecond', greatest(metadata_modification_time, (SELECT max(beat_at) FROM schema_lock)), now64(3)) AS silent_ms
FROM system.tables
WHERE database = currentDatabase() AND name = 'schema_lock'
