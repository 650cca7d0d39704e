-- name: universe_threads
-- How many threads a query of this user may have, 1 row.
SELECT toUInt64(getSetting('max_threads')) AS threads
