-- In which sectors are the best companies?
-- The share of companies graded SVC-1 or better, by sector. Grades sort from lowest to highest, so they can be compared.
-- Scores with little data lie near 50, so look at the mean completeness too.
-- 21,501 examples: 21 rows.
-- Columns: sector, companies, percent_svc_1, mean_completeness_pct
SELECT sector, count() AS companies, round(100 * avg(rating >= 'SVC-1'), 1) AS percent_svc_1,
    round(avg(completeness_pct), 1) AS mean_completeness_pct
FROM v1_score_latest
GROUP BY sector
ORDER BY percent_svc_1 DESC, sector
