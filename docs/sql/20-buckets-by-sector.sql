-- What is each sector good at?
-- Mean bucket scores, by sector. A bucket without data is 50, so look at the mean completeness too.
-- 21,501 examples: 21 rows.
-- Columns: sector, companies, team_structure, market_position, momentum_tailwinds, financial_health,
-- mean_completeness_pct
SELECT sector, count() AS companies, round(avg(s.team_structure), 1) AS team_structure, round(avg(s.market_position), 1) AS market_position,
    round(avg(s.momentum_tailwinds), 1) AS momentum_tailwinds, round(avg(s.financial_health), 1) AS financial_health,
    round(avg(completeness_pct), 1) AS mean_completeness_pct
FROM v1_score_latest AS s
GROUP BY sector
ORDER BY companies DESC, sector
