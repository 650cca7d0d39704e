-- Who calls how much this month?
-- Calls per account since the month began, most first.
-- 21,501 examples: no rows before a key is used, then a row for each account.
-- Columns: account_id, tier, cached_calls, cold_calls
SELECT account_id, argMax(u.tier, day) AS tier, sum(u.cached_calls) AS cached_calls, sum(u.cold_calls) AS cold_calls
FROM v1_usage_daily AS u
WHERE day >= toStartOfMonth(now())
GROUP BY account_id
ORDER BY cached_calls + cold_calls DESC, account_id
