-- What counts must say of each cohort, and in the first row, with empty names, of all companies. Sums are in hundredths; leaderboard is a
-- hash of its domains, in their order.
WITH arraySort(groupArray(composite)) AS sorted
SELECT
    sector, geo_scope, toString(profile) AS profile, count() AS n, avg(composite), sorted[intDiv(n * 50 + 99, 100)], sorted[intDiv(n * 90 + 99, 100)],
    stddevPopStable(composite), min(composite), max(composite),
    sum(toInt64(round(team_structure * 100))), sum(toInt64(round(market_position * 100))),
    sum(toInt64(round(momentum_tailwinds * 100))), sum(toInt64(round(financial_health * 100))),
    if(sector IN ('', 'unknown') OR geo_scope = 'unknown' OR profile = 'unclassified', '',
        lower(hex(MD5(arrayStringConcat(arrayMap(company -> company.2, arraySlice(arraySort(groupArray((-composite, domain))), 1, 201)), ' '))))) AS leaderboard
FROM bench_newest
GROUP BY GROUPING SETS ((sector, geo_scope, profile), ())
ORDER BY sector, geo_scope, profile
FORMAT TSV
