-- name: universe_sums
-- By how much the notes of a batch change the bucket scores of each cohort and premium, summed in hundredths, and the number
-- of companies. params: generation UInt64, note UInt64.
SELECT
    cohort, premium_bin, sum(n) AS companies,
    sum(n * toInt64(team_structure)) AS team_structure_sum, sum(n * toInt64(market_position)) AS market_position_sum,
    sum(n * toInt64(momentum_tailwinds)) AS momentum_tailwinds_sum, sum(n * toInt64(financial_health)) AS financial_health_sum
FROM
(
    SELECT cohort, premium_bin, 1 AS n, team_structure, market_position, momentum_tailwinds, financial_health FROM universe_company
    WHERE generation = {generation:UInt64} AND position = {note:UInt64}
    UNION ALL
    SELECT was_cohort, was_premium_bin, -1, was_team_structure, was_market_position, was_momentum_tailwinds, was_financial_health FROM universe_company
    WHERE generation = {generation:UInt64} AND position = {note:UInt64} AND was_standing != 0
)
GROUP BY cohort, premium_bin
ORDER BY cohort, premium_bin
