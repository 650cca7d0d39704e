-- Which peers score most like a company?
-- The ten peers with the nearest composites, and how much of their data is known.
-- 21,501 examples: 10 rows.
-- Columns: domain, company_name, composite, difference, completeness_pct
SELECT p.domain AS domain, p.company_name AS company_name, p.composite AS composite, round(p.composite - t.composite, 1) AS difference, p.completeness_pct AS completeness_pct
FROM v1_score_latest AS p
INNER JOIN (SELECT * FROM v1_score_latest WHERE domain = 'apple.com') AS t ON p.sector = t.sector AND p.geo_scope = t.geo_scope AND p.profile = t.profile
WHERE p.domain != t.domain
ORDER BY abs(difference), domain
LIMIT 10
