-- Which are the largest cohorts?
-- The twenty largest cohorts with their statistics.
-- 21,501 examples: 20 rows.
-- Columns: sector, geo_scope, profile, companies, mean, p50, p90, stddev
SELECT sector, geo_scope, profile, companies, round(mean, 2) AS mean, p50, p90, round(stddev, 2) AS stddev
FROM v1_cohort
ORDER BY companies DESC, sector, geo_scope, profile
LIMIT 20
