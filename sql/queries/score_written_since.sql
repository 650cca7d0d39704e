-- name: score_written_since
-- Records of one company and one pipeline version, newest first: all written since an instant, and the newest of the earlier ones.
-- params: domain String, version String, since_ms Int64.
SELECT
    domain, scored_at, pipeline_version, run_id, company_name, country, sector, geo_scope, profile, rating,
    composite, interval_low, interval_high, expected_composite, base, scale_premium, team_structure, market_position, momentum_tailwinds, financial_health,
    momentum_index, completeness_pct, confidence, written_at, cityHash64(domain, scored_at) AS record_id
FROM score_history
PREWHERE domain = {domain:String}
WHERE pipeline_version = {version:String}
ORDER BY scored_at DESC, written_at DESC
LIMIT 1 BY if(written_at < fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC'), 0, record_id)
SETTINGS max_threads = 1
