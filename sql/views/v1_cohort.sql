-- Statistics of cohorts. The inner query counts companies per composite. There are at most 1001 composites, so percentiles
-- are exact and need little memory. A percentile is the smallest value with at least that share of the cohort at or below it.
CREATE OR REPLACE VIEW {public:Identifier}.v1_cohort
(
    `pipeline_version` LowCardinality(String) COMMENT 'Version of the formulas; the current one in all rows',
    `sector` LowCardinality(String) COMMENT 'Sector of the companies',
    `geo_scope` LowCardinality(String) COMMENT 'Reach of the companies',
    `profile` Enum8('unclassified' = 0, 'growth' = 1, 'established' = 2) COMMENT 'Business profile; unclassified companies, and those of unknown sector or geo scope, are in no cohort',
    `companies` UInt64 COMMENT 'Number of companies',
    `mean` Float64 COMMENT 'Mean of the composites',
    `stddev` Float64 COMMENT 'Population standard deviation of the composites',
    `min` Float64 COMMENT 'Lowest composite',
    `p50` Float64 COMMENT 'Median composite; the lower one of two',
    `p90` Float64 COMMENT '90th percentile of the composites',
    `max` Float64 COMMENT 'Highest composite',
    `team_structure_mean` Float64 COMMENT 'Mean of the bucket score',
    `market_position_mean` Float64 COMMENT 'Mean of the bucket score',
    `momentum_tailwinds_mean` Float64 COMMENT 'Mean of the bucket score',
    `financial_health_mean` Float64 COMMENT 'Mean of the bucket score'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    any(version) AS pipeline_version, sector, geo_scope, profile,
    sum(n) AS companies,
    sum(n * tenths) / companies / 10 AS mean,
    sqrt(greatest(sum(n * tenths * tenths) / companies - pow(mean * 10, 2), 0)) / 10 AS stddev,
    min(tenths) / 10 AS min,
    arraySort(groupArray((tenths, n))) AS counts,
    arrayCumSum(c -> c.2, counts) AS below,
    counts[arrayFirstIndex(b -> b * 2 >= companies, below)].1 / 10 AS p50,
    counts[arrayFirstIndex(b -> b * 10 >= companies * 9, below)].1 / 10 AS p90,
    max(tenths) / 10 AS max,
    sum(team) / companies / 10 AS team_structure_mean, sum(market) / companies / 10 AS market_position_mean,
    sum(momentum) / companies / 10 AS momentum_tailwinds_mean, sum(financial) / companies / 10 AS financial_health_mean
FROM
(
    SELECT
        any(pipeline_version) AS version, sector, geo_scope, profile, toInt64(round(composite * 10)) AS tenths, count() AS n,
        sum(toInt64(round(team_structure * 10))) AS team, sum(toInt64(round(market_position * 10))) AS market,
        sum(toInt64(round(momentum_tailwinds * 10))) AS momentum, sum(toInt64(round(financial_health * 10))) AS financial
    FROM score_latest FINAL
    WHERE pipeline_version = (SELECT argMax(version, number) FROM pipeline_version) AND profile != 'unclassified' AND sector != 'unknown' AND geo_scope != 'unknown'
    GROUP BY sector, geo_scope, profile, tenths
)
GROUP BY sector, geo_scope, profile
COMMENT 'Cohorts: companies of one sector, geo scope and profile. One row per cohort; exact.';
