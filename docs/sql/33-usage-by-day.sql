-- How do calls develop?
-- Calls per day of the last 30 days.
-- 21,501 examples: no rows before a key is used, then a row for each day.
-- Columns: day, accounts, cached_calls, cold_calls
SELECT day, uniqExact(account_id) AS accounts, sum(u.cached_calls) AS cached_calls, sum(u.cold_calls) AS cold_calls
FROM v1_usage_daily AS u
WHERE day >= today() - 29
GROUP BY day
ORDER BY day
