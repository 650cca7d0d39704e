-- How did grades change within 90 days?
-- From which grade to which, with the companies that kept theirs.
-- 21,501 examples: no rows, since each company has one record.
-- With 300 companies of `companyscore bench seed --domains 300 --append`: 18 rows.
-- Columns: rating_then, rating_now, companies
SELECT rating_then, rating_now, count() AS companies
FROM v1_mover
WHERE window_days = 90
GROUP BY rating_then, rating_now
ORDER BY rating_then, rating_now
