-- name: score_history
-- Up to limit records of one company from an instant and before another, newest first. Of several records with the same scored_at (written twice, or
-- rescored with other formulas) only the one written last.
-- params: domain String, from_ms Int64, before_ms Int64, limit UInt32.
SELECT
    domain, scored_at, pipeline_version, run_id, company_name, country, sector, geo_scope, profile, rating,
    composite, interval_low, interval_high, expected_composite, base, scale_premium, team_structure, market_position, momentum_tailwinds, financial_health,
    momentum_index, completeness_pct, confidence
FROM score_history
PREWHERE domain = {domain:String} AND scored_at >= fromUnixTimestamp64Milli({from_ms:Int64}, 'UTC')
    AND scored_at < fromUnixTimestamp64Milli({before_ms:Int64}, 'UTC')
ORDER BY scored_at DESC, written_at DESC
LIMIT 1 BY scored_at
LIMIT {limit:UInt32}
SETTINGS max_threads = 1
