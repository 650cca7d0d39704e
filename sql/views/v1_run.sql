-- Work that ended or is in flight: the making of scores, of the last 90 days, and the jobs that keep statistics, of the last 400.
CREATE OR REPLACE VIEW v1_run
(
    `started_at` DateTime64(3, 'UTC') COMMENT 'When it began; for a scoring that has not begun, when it was asked for',
    `kind` LowCardinality(String) COMMENT 'score: a company was scored. batch: statistics were counted, or data put in order',
    `id` String COMMENT 'Identifies the run; run_id of the record that a scoring made',
    `subject` String COMMENT 'Domain of the company, or name of the job',
    `outcome` LowCardinality(String) COMMENT 'score: queued, running, succeeded, failed, timed_out or aborted. batch: ok or failed',
    `took_ms` Nullable(UInt64) COMMENT 'How long it took; NULL while it is not over',
    `origin` LowCardinality(String) COMMENT 'api, refresh or bulk, the lane in which the run waited; empty for batch',
    `attempts` Nullable(UInt16) COMMENT 'How often it was tried; NULL for batch',
    `read_rows` Nullable(UInt64) COMMENT 'Rows that ClickHouse read for it; NULL for score',
    `read_bytes` Nullable(UInt64) COMMENT 'Bytes that ClickHouse read for it; NULL for score',
    `peak_memory_bytes` Nullable(UInt64) COMMENT 'Most memory that ClickHouse used meanwhile; NULL for score',
    `companies` Nullable(UInt64) COMMENT 'Companies that were counted, 0 for jobs that count none; NULL for score',
    `error` String COMMENT 'Why it failed; empty when it did not'
)
AS SELECT * FROM
(
    SELECT
        if(toUnixTimestamp64Milli(started_at) = 0, created_at, started_at) AS started_at, 'score' AS kind, id, domain AS subject, toString(state) AS outcome,
        if(toUnixTimestamp64Milli(finished_at) = 0, NULL, toUInt64(greatest(dateDiff('millisecond', run_log.started_at, finished_at), 0))) AS took_ms,
        lane AS origin, toNullable(attempts) AS attempts, CAST(NULL, 'Nullable(UInt64)') AS read_rows, CAST(NULL, 'Nullable(UInt64)') AS read_bytes,
        CAST(NULL, 'Nullable(UInt64)') AS peak_memory_bytes, CAST(NULL, 'Nullable(UInt64)') AS companies, error
    FROM run_log FINAL
    UNION ALL
    SELECT
        started_at, 'batch', id, job, toString(outcome), toNullable(took_ms), '', CAST(NULL, 'Nullable(UInt16)'), toNullable(read_rows), toNullable(read_bytes),
        toNullable(peak_memory_bytes), toNullable(companies), error
    FROM batch_run
) AS runs
COMMENT 'Runs that made scores, of 90 days, and runs of batch jobs, of 400. One row per run.';
