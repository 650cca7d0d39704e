-- How many records are written per day?
-- Records of the last 14 days, by day, newest first.
-- 21,501 examples: 1 row.
-- Columns: day, records, companies
SELECT toDate(scored_at) AS day, count() AS records, uniqExact(domain) AS companies
FROM v1_score_history
WHERE scored_at >= toStartOfDay(now()) - INTERVAL 13 DAY
GROUP BY day
ORDER BY day DESC
