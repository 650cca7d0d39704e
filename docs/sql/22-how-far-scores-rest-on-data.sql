-- How far do scores rest on data?
-- Companies by confidence, with the mean share of signals that were observed.
-- 21,501 examples: 1 row, as none has 40 % of its data.
-- Columns: confidence, companies, mean_completeness_pct
SELECT confidence, count() AS companies, round(avg(completeness_pct), 1) AS mean_completeness_pct
FROM v1_score_latest
GROUP BY confidence
ORDER BY confidence DESC
