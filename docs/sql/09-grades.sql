-- How many companies have which grade?
-- One row per grade, also for grades without companies. By name SVC-1 sorts before SVC-1+, which is the better one.
-- 21,501 examples: 7 rows.
-- Columns: rating, companies, percent
SELECT label AS rating, companies, round(100 * share, 1) AS percent
FROM v1_distribution
WHERE measure = 'rating'
ORDER BY rating
