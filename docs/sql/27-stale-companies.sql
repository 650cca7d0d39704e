-- Which companies have the oldest scores?
-- The hundred whose newest record is oldest, with its age in days.
-- 21,501 examples: 100 rows.
-- Columns: domain, days
SELECT domain, dateDiff('day', scored_at, now()) AS days
FROM v1_score_latest
ORDER BY scored_at, domain
LIMIT 100
