-- name: universe_sums
-- By how much the notes of a batch change the bucket scores of each cohort and premium, summed in hundredths, and the number
-- of companies. params: generation UInt64, note UInt64.
SELECT
    cohort, premium_bin, sum(sign) AS companies,
    sum(sign * toInt64(team_structure)) AS team_structure_sum, sum(sign * toInt64(market_position)) AS market_position_sum,
    sum(sign * toInt64(momentum_tailwinds)) AS momentum_tailwinds_sum, sum(sign * toInt64(financial_health)) AS financial_health_sum
FROM universe_company
WHERE generation = {generation:UInt64} AND position = {note:UInt64} AND sign IN (-1, 1)
GROUP BY cohort, premium_bin
ORDER BY cohort, premium_bin
