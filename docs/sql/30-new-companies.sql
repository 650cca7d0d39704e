-- How many companies were scored for the first time, by month?
-- The last twelve months.
-- 21,501 examples: 1 row.
-- Columns: month, new_companies
SELECT toStartOfMonth(first) AS month, count() AS new_companies
FROM (SELECT domain, min(scored_at) AS first FROM v1_score_history GROUP BY domain)
WHERE first >= toStartOfMonth(now()) - INTERVAL 11 MONTH
GROUP BY month
ORDER BY month
