-- name: score_newest_records
-- Newest record per domain, of any pipeline version, with its signals. Companies without a record have no row. The times come from the
-- small table, so the signals of older records are not read.
-- params: domains Array(String).
SELECT
    domain, scored_at, pipeline_version, run_id, company_name, country, sector, geo_scope, profile, rating,
    composite, interval_low, interval_high, expected_composite, base, scale_premium, team_structure, market_position, momentum_tailwinds, financial_health,
    momentum_index, completeness_pct, team_structure_completeness_pct, market_position_completeness_pct,
    momentum_tailwinds_completeness_pct, financial_health_completeness_pct, confidence,
    `signal.id`, `signal.state`, `signal.raw`, `signal.score`, `signal.source`, `signal.origin`, `signal.reason`, `signal.observed_at`,
    `warning.source`, `warning.code`, `warning.at`
FROM score_history
PREWHERE domain IN {domains:Array(String)} AND (domain, scored_at) IN
    (
        SELECT domain, max(scored_at)
        FROM score_latest
        PREWHERE domain IN {domains:Array(String)}
        GROUP BY domain
    )
ORDER BY domain, written_at DESC
LIMIT 1 BY domain
SETTINGS max_threads = 1
