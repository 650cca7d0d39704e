-- name: request_history
-- Requests of an account by day, key, route or status: days in order, other groups by calls, at most limit.
-- params: account_id String, start_ms Int64, end_ms Int64 (exclusive; both whole minutes), by String (day, key, route or status), limit UInt32.
-- columns: group, calls, charged, errors, took_us, bytes.
SELECT
    multiIf({by:String} = 'day', toString(toDate(minute)), {by:String} = 'key', toString(key_id), {by:String} = 'route', toString(route), toString(status)) AS group,
    sum(request_minute.calls) AS calls, sum(request_minute.charged) AS charged, sumIf(request_minute.calls, status >= 400) AS errors,
    sum(request_minute.took_us) AS took_us, sum(request_minute.bytes) AS bytes
FROM request_minute FINAL
WHERE account_id = {account_id:String} AND minute >= fromUnixTimestamp64Milli({start_ms:Int64}, 'UTC') AND minute < fromUnixTimestamp64Milli({end_ms:Int64}, 'UTC')
GROUP BY group
ORDER BY if({by:String} = 'day', group, ''), calls DESC, group
LIMIT {limit:UInt32}
