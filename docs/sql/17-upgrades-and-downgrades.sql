-- Whose grade changed within 90 days?
-- From which grade to which, and how many.
-- Columns: rating_then, rating_now, companies
SELECT rating_then, rating_now, count() AS companies
FROM v1_mover
WHERE window_days = 90 AND rating_now != rating_then
GROUP BY rating_then, rating_now
ORDER BY rating_then, rating_now
