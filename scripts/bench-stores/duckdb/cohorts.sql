-- A cohort answer leaves the target out and ranks it, so each cohort keeps its counts by composite beside its statistics, which follow from them.
SELECT sector, geo_scope, profile, composite, count(*), sum(team_structure), sum(market_position), sum(momentum_tailwinds), sum(financial_health)
FROM latest
GROUP BY sector, geo_scope, profile, composite
