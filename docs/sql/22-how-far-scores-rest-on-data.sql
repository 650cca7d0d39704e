-- How far do scores rest on data?
-- Companies by confidence, with the mean share of signals that were observed.
-- Columns: confidence, companies, mean_completeness_pct
SELECT confidence, count() AS companies, round(avg(completeness_pct), 1) AS mean_completeness_pct
FROM v1_score_latest
GROUP BY confidence
ORDER BY confidence DESC
