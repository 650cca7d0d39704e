-- Where does a company stand among its peers?
-- Rank and percentile among the other companies of the same sector, reach and profile, as in GET
-- /v1/company/{domain}/cohort. A peer with an equal composite counts as half below.
-- 21,501 examples: 1 row.
-- Columns: domain, composite, peers, rank, percentile, difference_to_mean
SELECT t.domain AS domain, any(t.composite) AS composite, count() AS peers, 1 + countIf(p.composite > t.composite) AS rank,
    round(100 * (countIf(p.composite < t.composite) + countIf(p.composite = t.composite) / 2) / peers, 2) AS percentile, round(any(t.composite) - avg(p.composite), 2) AS difference_to_mean
FROM v1_score_latest AS p
INNER JOIN (SELECT * FROM v1_score_latest WHERE domain = 'apple.com') AS t ON p.sector = t.sector AND p.geo_scope = t.geo_scope AND p.profile = t.profile
WHERE p.domain != t.domain AND p.profile != 'unclassified'
GROUP BY t.domain
