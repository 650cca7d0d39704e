-- Which companies crossed the line between two grades within 90 days?
-- Each crossing, also of companies that came back since. The last columns say whether the later record rests on less data.
-- 21,501 examples: no rows, since each company has one record.
-- With 300 companies of `companyscore bench seed --domains 300 --append`: 47 rows.
-- Columns: domain, scored_at, rating_before, rating, composite_before, composite, completeness_pct_before, completeness_pct
SELECT domain, scored_at, rating_before, rating, composite_before, composite, completeness_pct_before, completeness_pct
FROM v1_rating_change
WHERE scored_at >= now() - INTERVAL 90 DAY AND pipeline_version = 'v2'
ORDER BY scored_at DESC, domain
LIMIT 50
