-- The newest record of each company, once for all that follows.
DROP TABLE IF EXISTS latest;
CREATE UNLOGGED TABLE latest AS
SELECT DISTINCT ON (domain) domain, company_name, sector, geo_scope, profile, rating, composite, scale_premium,
    team_structure, market_position, momentum_tailwinds, financial_health
FROM score_history
WHERE scored_at <= :'end'
ORDER BY domain, scored_at DESC, written_at DESC;
ANALYZE latest;
