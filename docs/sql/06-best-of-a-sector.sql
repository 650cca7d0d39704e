-- Which companies of a sector have the highest scores?
-- The ten best, with their place and the share of their data that is known. Add AND confidence >= 'medium' before you act on one.
-- 21,501 examples: 10 rows.
-- Columns: place, domain, company_name, composite, rating, completeness_pct
SELECT row_number() OVER (ORDER BY composite DESC, domain) AS place, domain, company_name, composite, rating, completeness_pct
FROM v1_score_latest
WHERE sector = 'software'
ORDER BY place
LIMIT 10
