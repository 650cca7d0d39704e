-- name: score_first
-- Oldest record of one company with its signals: 0 or 1 row. params: domain String.
SELECT
    domain, scored_at, pipeline_version, run_id, company_name, country, sector, geo_scope, profile, rating,
    composite, interval_low, interval_high, expected_composite, base, scale_premium, team_structure, market_position, momentum_tailwinds, financial_health,
    momentum_index, completeness_pct, team_structure_completeness_pct, market_position_completeness_pct,
    momentum_tailwinds_completeness_pct, financial_health_completeness_pct, confidence,
    `signal.id`, `signal.state`, `signal.raw`, `signal.score`, `signal.source`, `signal.origin`, `signal.reason`, `signal.observed_at`,
    `warning.source`, `warning.code`, `warning.at`
FROM score_history
PREWHERE domain = {domain:String}
ORDER BY domain, scored_at, written_at DESC
LIMIT 1
SETTINGS max_threads = 1
