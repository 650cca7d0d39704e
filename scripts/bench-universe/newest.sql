-- The newest record of each company, found by sorting all history.
CREATE OR REPLACE TABLE bench_newest ENGINE = MergeTree ORDER BY domain
AS SELECT domain, company_name, sector, geo_scope, profile, composite, scale_premium, team_structure, market_position, momentum_tailwinds, financial_health
FROM score_history
ORDER BY domain, scored_at DESC, written_at DESC
LIMIT 1 BY domain
SETTINGS max_bytes_before_external_sort = 1000000000
