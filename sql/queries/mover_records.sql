-- name: mover_records
-- Two records of each company with their signals, by domain and time: the newest before a window and the newest until its end. Of several
-- records with the same scored_at only the one written last.
-- params: domains Array(String), version String, start_ms Int64, end_ms Int64.
SELECT
    domain, scored_at, pipeline_version, run_id, company_name, country, sector, geo_scope, profile, rating,
    composite, interval_low, interval_high, expected_composite, base, scale_premium, team_structure, market_position, momentum_tailwinds, financial_health,
    momentum_index, completeness_pct, team_structure_completeness_pct, market_position_completeness_pct,
    momentum_tailwinds_completeness_pct, financial_health_completeness_pct, confidence,
    `signal.id`, `signal.state`, `signal.raw`, `signal.score`, `signal.source`, `signal.origin`, `signal.reason`, `signal.observed_at`,
    `warning.source`, `warning.code`, `warning.at`
FROM score_history
PREWHERE domain IN {domains:Array(String)} AND (domain, toUnixTimestamp64Milli(scored_at)) IN
    (
        SELECT domain, arrayJoin([max(at), maxIf(at, at < {start_ms:Int64})])
        FROM
        (
            SELECT domain, toUnixTimestamp64Milli(scored_at) AS at
            FROM score_history
            PREWHERE domain IN {domains:Array(String)}
            WHERE pipeline_version = {version:String} AND at <= {end_ms:Int64}
        )
        GROUP BY domain
    )
WHERE pipeline_version = {version:String}
ORDER BY domain, scored_at, written_at DESC
LIMIT 1 BY domain, scored_at
SETTINGS max_threads = 1
