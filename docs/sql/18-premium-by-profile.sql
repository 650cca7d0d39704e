-- Who earns a scale premium?
-- How many companies of each profile have one, and how much.
-- 21,501 examples: 3 rows.
-- Columns: profile, companies, with_premium, mean_premium, max_premium
SELECT profile, count() AS companies, countIf(scale_premium > 0) AS with_premium, round(avgOrDefaultIf(scale_premium, scale_premium > 0), 2) AS mean_premium, max(scale_premium) AS max_premium
FROM v1_score_latest
GROUP BY profile
ORDER BY profile DESC
