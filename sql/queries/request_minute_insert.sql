-- name: request_minute_insert
-- Appends totals of requests. The row with the largest version of a minute, kind and server is valid.
INSERT INTO request_minute (account_id, minute, key_id, route, status, error_code, answered_by, server, calls, charged, not_stored, took_us, bytes, version)
