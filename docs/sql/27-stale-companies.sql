-- Which companies have not been scored for 30 days?
-- Oldest scores first.
-- Columns: domain, days
SELECT domain, dateDiff('day', scored_at, now()) AS days
FROM v1_score_latest
WHERE scored_at < now() - INTERVAL 30 DAY
ORDER BY scored_at, domain
LIMIT 100
