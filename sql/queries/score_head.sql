-- name: score_head
-- Newest score of one company under any pipeline version, without its signals: 0 or 1 row.
-- The order lets the newest version win before parts merge. params: domain String.
SELECT
    domain, scored_at, pipeline_version, run_id, company_name, country, sector, geo_scope, profile, rating,
    composite, base, scale_premium, team_structure, market_position, momentum_tailwinds, financial_health,
    momentum_index, completeness_pct, confidence
FROM score_latest
WHERE domain = {domain:String}
ORDER BY scored_at DESC, written_at DESC
LIMIT 1
