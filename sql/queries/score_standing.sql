-- name: score_standing
-- Newest record of one company, and the newest that statistics counted when they counted records of one pipeline version
-- written up to an instant: the newest with counted = 0 and the newest with counted = 1, 0 to 2 rows, newest first.
-- params: domain String, version String, cut_ms Int64.
SELECT
    domain, scored_at, pipeline_version, run_id, company_name, country, sector, geo_scope, profile, rating,
    composite, base, scale_premium, team_structure, market_position, momentum_tailwinds, financial_health,
    momentum_index, completeness_pct, confidence,
    pipeline_version = {version:String} AND written_at <= fromUnixTimestamp64Milli({cut_ms:Int64}, 'UTC') AS counted
FROM score_history
WHERE domain = {domain:String}
ORDER BY scored_at DESC, written_at DESC
LIMIT 1 BY counted
