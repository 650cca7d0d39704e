-- A cohort answer leaves the target out and ranks it, so each cohort keeps its counts by composite beside its statistics.
SELECT sector, geo_scope, profile, count(*), avg(composite), percentile_disc(0.5) WITHIN GROUP (ORDER BY composite),
    percentile_disc(0.9) WITHIN GROUP (ORDER BY composite), stddev_pop(composite), min(composite), max(composite),
    sum(team_structure), sum(market_position), sum(momentum_tailwinds), sum(financial_health)
FROM latest
GROUP BY sector, geo_scope, profile
ORDER BY sector, geo_scope, profile;
SELECT sector, geo_scope, profile, composite, count(*)
FROM latest
GROUP BY sector, geo_scope, profile, composite
ORDER BY sector, geo_scope, profile, composite;
