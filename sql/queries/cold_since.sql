-- name: cold_since
-- Charged cold calls of an account after an instant, oldest first, without refunded ones.
-- params: account_id String, since_ms Int64. columns: at, job_id, run_id, key_id, domain.
SELECT at, job_id, run_id, key_id, domain
FROM cold_call FINAL
WHERE at > fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC') AND account_id = {account_id:String} AND NOT refunded
ORDER BY at
