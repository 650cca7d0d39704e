-- What is the distribution of all scores, in one row?
-- The numbers of GET /v1/distribution. quantileExactLow gives the lower median, as the service does.
-- 21,501 examples: 1 row.
-- Columns: companies, mean, stddev, min, p50, max
SELECT count() AS companies, round(avg(composite), 2) AS mean, round(stddevPop(composite), 2) AS stddev, min(composite) AS min, quantileExactLow(0.5)(composite) AS p50, max(composite) AS max
FROM v1_score_latest
