-- name: log_flush
-- Writes the logs of a server, which creates the table query_log of a new one.
SYSTEM FLUSH LOGS
