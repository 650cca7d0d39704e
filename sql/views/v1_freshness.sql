-- Age of the records of each pipeline version, and of the last runs of the count and refresh jobs.
CREATE OR REPLACE VIEW {public:Identifier}.v1_freshness
(
    `pipeline_version` LowCardinality(String) COMMENT 'Version of the formulas',
    `is_current` Bool COMMENT 'Whether new records are of this version',
    `companies` UInt64 COMMENT 'Companies with a record of this version',
    `newest_scored_at` DateTime64(3, 'UTC') COMMENT 'scored_at of the newest record; 1970-01-01 without records',
    `oldest_scored_at` DateTime64(3, 'UTC') COMMENT 'Oldest scored_at among the newest records of all companies; 1970-01-01 without records',
    `within_1h` UInt64 COMMENT 'Companies whose newest record is at most an hour old',
    `within_24h` UInt64 COMMENT 'Companies whose newest record is at most 24 hours old',
    `within_7d` UInt64 COMMENT 'Companies whose newest record is at most 7 days old',
    `within_30d` UInt64 COMMENT 'Companies whose newest record is at most 30 days old',
    `statistics_at` Nullable(DateTime64(3, 'UTC')) COMMENT 'Start of the last successful run of the count job; NULL without one and for older versions',
    `refresh_at` Nullable(DateTime64(3, 'UTC')) COMMENT 'Start of the last successful run of the refresh job; NULL without one and for older versions',
    `refresh_young_share` Nullable(Float64) COMMENT 'Share of all companies younger than their target age at refresh_at, 0 to 1; NULL when refresh_at is NULL, and without companies',
    `refresh_due` Nullable(UInt64) COMMENT 'Companies older than their target age at refresh_at whose score a run can change; NULL when refresh_at is NULL',
    `refresh_oldest_at` Nullable(DateTime64(3, 'UTC')) COMMENT 'Oldest scored_at among the newest records of all companies at refresh_at, of any version; NULL when refresh_at is NULL, and without companies'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    v.version AS pipeline_version, toBool(assumeNotNull(v.number = (SELECT max(number) FROM pipeline_version))) AS is_current,
    s.companies, s.newest AS newest_scored_at, s.oldest AS oldest_scored_at, s.h1 AS within_1h, s.h24 AS within_24h, s.d7 AS within_7d, s.d30 AS within_30d,
    if(is_current, (SELECT maxOrNull(started_at) FROM batch_run WHERE outcome = 'ok' AND job = 'count'), NULL) AS statistics_at,
    if(is_current, (SELECT maxOrNull(started_at) FROM batch_run WHERE outcome = 'ok' AND job = 'refresh'), NULL) AS refresh_at,
    if(is_current, (SELECT argMaxOrNull(young, started_at) / nullIf(argMaxOrNull(companies, started_at), 0) FROM batch_run WHERE outcome = 'ok' AND job = 'refresh'), NULL) AS refresh_young_share,
    if(is_current, (SELECT argMaxOrNull(due, started_at) FROM batch_run WHERE outcome = 'ok' AND job = 'refresh'), NULL) AS refresh_due,
    if(is_current, (SELECT nullIf(argMaxOrNull(oldest_scored_at, started_at), toDateTime64(0, 3, 'UTC')) FROM batch_run WHERE outcome = 'ok' AND job = 'refresh'), NULL) AS refresh_oldest_at
FROM (SELECT number, argMax(version, since) AS version FROM pipeline_version GROUP BY number) AS v
LEFT JOIN
(
    SELECT
        pipeline_version, count() AS companies, max(scored_at) AS newest, min(scored_at) AS oldest, countIf(scored_at >= now() - toIntervalHour(1)) AS h1,
        countIf(scored_at >= now() - toIntervalHour(24)) AS h24, countIf(scored_at >= now() - toIntervalDay(7)) AS d7, countIf(scored_at >= now() - toIntervalDay(30)) AS d30
    FROM score_latest FINAL
    GROUP BY pipeline_version
) AS s ON s.pipeline_version = v.version
COMMENT 'Age of the data. One row per pipeline version.';
