-- Which companies of a sector have the highest scores?
-- The ten best with medium or high confidence, with their place.
-- Columns: place, domain, company_name, composite, rating
SELECT row_number() OVER (ORDER BY composite DESC, domain) AS place, domain, company_name, composite, rating
FROM v1_score_latest
WHERE sector = 'software' AND confidence >= 'medium'
ORDER BY place
LIMIT 10
