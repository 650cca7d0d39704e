-- name: server
-- Version and clock of the server. 1 row.
-- returns: version String, now Int64 in milliseconds since 1970.
SELECT version() AS version, toUnixTimestamp64Milli(now64(3)) AS now
