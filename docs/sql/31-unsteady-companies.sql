-- Whose score is least steady?
-- The standard deviation of each company's composites within a year, of companies with at least three records of medium or high confidence.
-- 21,501 examples: no rows, since each company has one record.
-- With 300 companies of `companyscore bench seed --domains 300 --append`: 20 rows.
-- Columns: domain, records, stddev, lowest, highest
SELECT domain, count() AS records, round(stddevPop(composite), 2) AS stddev, min(composite) AS lowest, max(composite) AS highest
FROM v1_score_history
WHERE pipeline_version = 'v2' AND scored_at >= now() - INTERVAL 365 DAY AND confidence >= 'medium'
GROUP BY domain
HAVING records >= 3
ORDER BY stddev DESC, domain
LIMIT 20
