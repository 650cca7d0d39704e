-- name: score_heads
-- Newest record per domain, of any pipeline version, without signals, with the time of its write and its id. Companies without a record
-- have no row.
-- params: domains Array(String).
SELECT
    domain, scored_at, pipeline_version, run_id, company_name, country, sector, geo_scope, profile, rating,
    composite, interval_low, interval_high, expected_composite, base, scale_premium, team_structure, market_position, momentum_tailwinds, financial_health,
    momentum_index, completeness_pct, confidence, written_at, cityHash64(domain, scored_at) AS record_id
FROM score_latest
PREWHERE domain IN {domains:Array(String)}
ORDER BY scored_at DESC, written_at DESC
LIMIT 1 BY domain
SETTINGS max_threads = 1
