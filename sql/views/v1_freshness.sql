-- How old the data is: what of each pipeline version there is, and when statistics were counted last.
CREATE OR REPLACE VIEW v1_freshness
(
    `pipeline_version` LowCardinality(String) COMMENT 'Generation of the formulas',
    `is_current` Bool COMMENT 'Whether new records are of this version',
    `companies` UInt64 COMMENT 'Companies with a record of this version',
    `newest_scored_at` DateTime64(3, 'UTC') COMMENT 'When the newest record was made; 1970-01-01 when there is none',
    `oldest_scored_at` DateTime64(3, 'UTC') COMMENT 'When the newest record of the company that has waited longest was made; 1970-01-01 when there is none',
    `within_1h` UInt64 COMMENT 'Companies whose newest record is at most an hour old',
    `within_24h` UInt64 COMMENT 'Companies whose newest record is at most 24 hours old',
    `within_7d` UInt64 COMMENT 'Companies whose newest record is at most 7 days old',
    `within_30d` UInt64 COMMENT 'Companies whose newest record is at most 30 days old',
    `statistics_at` Nullable(DateTime64(3, 'UTC')) COMMENT 'When the last good count of all companies began; NULL when there was none, and for older versions',
    `refresh_at` Nullable(DateTime64(3, 'UTC')) COMMENT 'When the last good run of the refresh job began; NULL when there was none, and for older versions',
    `refresh_young_share` Nullable(Float64) COMMENT 'Share of all companies that were younger than their target age then, 0 to 1; NULL as above, and without companies',
    `refresh_due` Nullable(UInt64) COMMENT 'Companies that were older than that then, and of which a run could learn something new; NULL as above',
    `refresh_oldest_at` Nullable(DateTime64(3, 'UTC')) COMMENT 'When the newest record of the oldest company was made, of whichever version, as of then; NULL as above, and without companies'
)
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
COMMENT 'How old the data is. One row per pipeline version.';
