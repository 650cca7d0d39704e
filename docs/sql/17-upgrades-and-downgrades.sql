-- How did grades change within 90 days?
-- From which grade to which, with the companies that kept theirs.
-- Columns: rating_then, rating_now, companies
SELECT rating_then, rating_now, count() AS companies
FROM v1_mover
WHERE window_days = 90
GROUP BY rating_then, rating_now
ORDER BY rating_then, rating_now
