-- What is each sector good at?
-- Mean bucket scores, by sector. Directional scores are left out.
-- Columns: sector, companies, team_structure, market_position, momentum_tailwinds, financial_health
SELECT sector, count() AS companies, round(avg(s.team_structure), 1) AS team_structure, round(avg(s.market_position), 1) AS market_position,
    round(avg(s.momentum_tailwinds), 1) AS momentum_tailwinds, round(avg(s.financial_health), 1) AS financial_health
FROM v1_score_latest AS s
WHERE confidence >= 'low'
GROUP BY sector
ORDER BY companies DESC, sector
