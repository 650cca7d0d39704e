-- In which sectors are the best companies?
-- The share of companies graded SVC-1 or better, by sector. Grades sort from lowest to highest, so they can be compared.
-- Directional scores are left out: they rest on a few signals and lie near 50.
-- Columns: sector, companies, percent_svc_1
SELECT sector, count() AS companies, round(100 * avg(rating >= 'SVC-1'), 1) AS percent_svc_1
FROM v1_score_latest
WHERE confidence >= 'low'
GROUP BY sector
ORDER BY percent_svc_1 DESC, sector
