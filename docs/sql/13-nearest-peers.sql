-- Which peers score most like a company?
-- The ten peers with the nearest composites, of those with medium or high confidence.
-- Columns: domain, company_name, composite, difference
SELECT p.domain AS domain, p.company_name AS company_name, p.composite AS composite, round(p.composite - t.composite, 1) AS difference
FROM v1_score_latest AS p
INNER JOIN (SELECT * FROM v1_score_latest WHERE domain = 'example.com') AS t ON p.sector = t.sector AND p.geo_scope = t.geo_scope AND p.profile = t.profile
WHERE p.domain != t.domain AND p.confidence >= 'medium'
ORDER BY abs(difference), domain
LIMIT 10
