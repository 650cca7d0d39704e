-- name: universe_standing
-- How companies were counted as of a batch, 0 or 1 row each; scores in hundredths.
-- params: companies Array(UInt64), generation UInt64, note UInt64.
SELECT
    company, toInt64(toUInt64(bitShiftRight(latest, 64))) AS scored_ms, cohort, composite, team_structure, market_position, momentum_tailwinds, financial_health
FROM universe_company
WHERE generation = {generation:UInt64} AND company IN {companies:Array(UInt64)} AND position <= {note:UInt64}
ORDER BY position DESC
LIMIT 1 BY company
SETTINGS max_threads = 1
