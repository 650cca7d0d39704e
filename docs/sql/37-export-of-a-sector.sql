-- How do I export a sector?
-- All newest scores of a sector: give --format Parquet or CSVWithNames. docs/sql/README.md shows how to export
-- everything, in parts.
-- 21,501 examples: 1364 rows.
-- Columns: domain, scored_at, company_name, country, geo_scope, profile, rating, composite, scale_premium,
-- team_structure, market_position, momentum_tailwinds, financial_health
SELECT domain, scored_at, company_name, country, geo_scope, profile, rating, composite, scale_premium, team_structure, market_position, momentum_tailwinds, financial_health
FROM v1_score_latest
WHERE sector = 'software'
ORDER BY domain
