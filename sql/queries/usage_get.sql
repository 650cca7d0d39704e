-- name: usage_get
-- Newest totals of an account for a month: 0 or 1 row. params: account_id String, period Date (first of the month).
SELECT tier, cached_calls, cold_calls, updated_at
FROM usage
WHERE period = {period:Date} AND account_id = {account_id:String}
ORDER BY updated_at DESC
LIMIT 1
SETTINGS max_threads = 1
