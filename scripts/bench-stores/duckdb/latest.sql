-- The newest record of each company, once for all that follows. Rows are found by id first: carrying their columns through the grouping
-- takes twice as long, as do DISTINCT ON and QUALIFY.
CREATE OR REPLACE TABLE latest AS
SELECT domain, company_name, sector, geo_scope, profile, rating, composite, scale_premium, team_structure, market_position, momentum_tailwinds, financial_health
FROM score_history
WHERE rowid IN (SELECT arg_max(rowid, scored_at) FROM score_history WHERE scored_at <= $end GROUP BY domain)
