-- name: universe_cohorts
-- What some cohorts are called. params: version String, cohorts Array(UInt64).
SELECT cohort, any(sector) AS sector, any(geo_scope) AS geo_scope, toString(any(profile)) AS profile
FROM universe_record
WHERE pipeline_version = {version:String} AND cohort IN {cohorts:Array(UInt64)}
GROUP BY cohort
