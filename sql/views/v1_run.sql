-- Runs of companies of the last 90 days, and runs of cron jobs of the last 400 days, in flight or ended.
CREATE OR REPLACE VIEW {public:Identifier}.v1_run
(
    `started_at` DateTime64(3, 'UTC') COMMENT 'Start; for a score that is still queued, when it was queued',
    `kind` LowCardinality(String) COMMENT 'score: cold run of a company. batch: run of a cron job',
    `id` String COMMENT 'Id of the run; run_id of its record',
    `subject` String COMMENT 'Domain of the company, or name of the job',
    `outcome` LowCardinality(String) COMMENT 'score: queued, running, succeeded, failed, timed_out or aborted. batch: ok or failed',
    `took_ms` Nullable(UInt64) COMMENT 'Duration in milliseconds; NULL while in flight',
    `origin` LowCardinality(String) COMMENT 'Lane of the run: api, refresh or bulk; empty for batch',
    `attempts` Nullable(UInt16) COMMENT 'Number of attempts; NULL for batch',
    `read_rows` Nullable(UInt64) COMMENT 'Rows that ClickHouse read during the run, of all clients; NULL for score',
    `read_bytes` Nullable(UInt64) COMMENT 'Bytes that ClickHouse read during the run, of all clients; NULL for score',
    `peak_memory_bytes` Nullable(UInt64) COMMENT 'Peak memory of ClickHouse during the run; NULL for score',
    `companies` Nullable(UInt64) COMMENT 'Companies counted; 0 for jobs that count none; NULL for score',
    `error` String COMMENT 'Cause of a failure; empty otherwise'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
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
COMMENT 'Cold runs of the last 90 days and runs of cron jobs of the last 400. One row per run.';
