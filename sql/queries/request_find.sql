-- name: request_find
-- Rows with a request id, of one account unless it is empty, newest first. Callers choose ids, so several accounts may have sent one.
-- FINAL would read the table without the index by id, so LIMIT 1 BY drops repeated rows.
-- params: id String, account_id String, limit UInt32. columns: as the table.
SELECT at, id, account_id, key_id, route, status, error_code, answered_by, took_us, bytes, charged, job_id, server, number
FROM request
WHERE id = {id:String} AND ({account_id:String} = '' OR account_id = {account_id:String})
ORDER BY at DESC, server, number DESC
LIMIT 1 BY at, server, number
LIMIT {limit:UInt32}
