-- name: universe_standing
-- How a company was counted as of a batch, 0 or 1 row; scores in hundredths.
-- params: domain String, generation UInt64, note UInt64.
SELECT
    toInt64(toUInt64(bitShiftRight(latest, 64))) AS scored_ms, cohort, composite, team_structure, market_position, momentum_tailwinds, financial_health
FROM universe_company
WHERE generation = {generation:UInt64} AND company = cityHash64({domain:String}) AND sign = 1 AND position <= {note:UInt64}
ORDER BY position DESC
LIMIT 1
