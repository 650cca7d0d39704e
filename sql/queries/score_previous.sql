-- name: score_previous
-- Record of each domain at a time, with its signals. Of several records with the same scored_at only the one written last.
-- params: domains Array(String) without repetition, scored_ms Array(Int64) in their order.
SELECT
    domain, scored_at, pipeline_version, run_id, company_name, country, sector, geo_scope, profile, rating,
    composite, interval_low, interval_high, expected_composite, base, scale_premium, team_structure, market_position, momentum_tailwinds, financial_health,
    momentum_index, completeness_pct, team_structure_completeness_pct, market_position_completeness_pct,
    momentum_tailwinds_completeness_pct, financial_health_completeness_pct, confidence,
    `signal.id`, `signal.state`, `signal.raw`, `signal.score`, `signal.source`, `signal.origin`, `signal.reason`, `signal.observed_at`,
    `warning.source`, `warning.code`, `warning.at`
FROM score_history
PREWHERE domain IN {domains:Array(String)}
    AND has({scored_ms:Array(Int64)}, toUnixTimestamp64Milli(scored_at))
WHERE toUnixTimestamp64Milli(scored_at) = {scored_ms:Array(Int64)}[indexOf({domains:Array(String)}, domain)]
ORDER BY domain, length(`signal.id`) = 0, written_at DESC
LIMIT 1 BY domain
SETTINGS max_threads = 1
