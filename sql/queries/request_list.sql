-- name: request_list
-- Newest requests of an account since an instant, of a key and a status unless these are empty or 0. LIMIT 1 BY drops repeated rows.
-- params: account_id String, since_ms Int64, key_id String, status UInt16, limit UInt32. columns: as the table.
SELECT at, id, account_id, key_id, route, status, error_code, answered_by, took_us, bytes, charged, job_id, server, number
FROM request
WHERE account_id = {account_id:String} AND at >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC')
    AND ({key_id:String} = '' OR key_id = {key_id:String}) AND ({status:UInt16} = 0 OR status = {status:UInt16})
ORDER BY at DESC, server DESC, number DESC
LIMIT 1 BY at, server, number
LIMIT {limit:UInt32}
