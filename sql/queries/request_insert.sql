-- name: request_insert
-- Appends rows of requests. A row replaces an earlier one with the same time, server and number.
INSERT INTO request (at, id, account_id, key_id, route, status, error_code, answered_by, took_us, bytes, charged, job_id, server, number)
