-- name: score_heads
-- Newest score of each of some companies under any pipeline version, without its signals and with the moment it was written and its id. Companies never scored have no row.
-- params: domains Array(String).
SELECT
    domain, scored_at, pipeline_version, run_id, company_name, country, sector, geo_scope, profile, rating,
    composite, base, scale_premium, team_structure, market_position, momentum_tailwinds, financial_health,
    momentum_index, completeness_pct, confidence, written_at, cityHash64(domain, scored_at) AS record_id
FROM score_latest
PREWHERE domain IN {domains:Array(String)}
ORDER BY scored_at DESC, written_at DESC
LIMIT 1 BY domain
SETTINGS max_threads = 1
