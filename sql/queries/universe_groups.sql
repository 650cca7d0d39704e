-- name: universe_groups
-- Every group of companies with the same sector, reach and profile, one row each: composites and premiums counted, bucket
-- scores summed in hundredths, and the 201 members with the highest composites, then by domain. Counted are the
-- newest records of one pipeline version. params: version String.
WITH
    sumMap([toUInt32(round(composite * 100))], [toInt64(1)]) AS composites,
    sumMap([toUInt32(least(floor(scale_premium), 11))], [toInt64(1)]) AS premiums,
    groupArraySorted(201)((-composite, domain, company_name, rating)) AS top
SELECT
    sector, geo_scope, profile,
    composites.1 AS steps, composites.2 AS step_counts,
    premiums.1 AS premium_bins, premiums.2 AS premium_counts,
    sum(toInt64(round(team_structure * 100))) AS team_structure_sum,
    sum(toInt64(round(market_position * 100))) AS market_position_sum,
    sum(toInt64(round(momentum_tailwinds * 100))) AS momentum_tailwinds_sum,
    sum(toInt64(round(financial_health * 100))) AS financial_health_sum,
    arrayMap(x -> x.2, top) AS top_domains, arrayMap(x -> x.3, top) AS top_names,
    arrayMap(x -> -x.1, top) AS top_composites, arrayMap(x -> toString(x.4), top) AS top_ratings
FROM score_latest FINAL
WHERE pipeline_version = {version:String}
GROUP BY sector, geo_scope, profile
ORDER BY sector, geo_scope, profile
