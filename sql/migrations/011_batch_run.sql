-- One row per run of a cron job, written at its end and kept for 400 days.
CREATE TABLE IF NOT EXISTS batch_run
(
    started_at DateTime64(3, 'UTC') COMMENT 'Start of the run' CODEC(Delta(8), ZSTD(1)),
    job LowCardinality(String) COMMENT 'Name of the job: count, movers, refresh, housekeeping, spreads or inbox',
    id String COMMENT 'UUID of the run' CODEC(ZSTD(1)),
    fence UInt64 COMMENT 'Fence of the process that ran it; later ones are larger',
    took_ms UInt64 COMMENT 'Duration in milliseconds',
    read_rows UInt64 COMMENT 'Rows that ClickHouse read during the run, of all clients',
    read_bytes UInt64 COMMENT 'Bytes that ClickHouse read during the run, of all clients',
    peak_memory_bytes UInt64 COMMENT 'Peak memory of ClickHouse during the run, of all clients',
    companies UInt64 COMMENT 'count and refresh: companies counted; 0 for other jobs',
    young UInt64 COMMENT 'refresh: companies younger than their target age; 0 for other jobs',
    due UInt64 COMMENT 'refresh: companies older than their target age whose score a run can change; 0 for other jobs',
    started UInt64 COMMENT 'refresh and inbox: runs started; 0 for other jobs',
    oldest_scored_at DateTime64(3, 'UTC') COMMENT 'refresh: oldest scored_at among the newest records of all companies; 1970-01-01 without companies and for other jobs',
    outcome Enum8('ok' = 1, 'failed' = 2) COMMENT 'Outcome; after failed the last good result stays',
    error String COMMENT 'Cause of a failure; empty otherwise' CODEC(ZSTD(1))
)
ENGINE = MergeTree
PARTITION BY toYear(started_at)
ORDER BY (started_at, job)
TTL toDateTime(started_at) + INTERVAL 400 DAY
COMMENT 'Runs of cron jobs. Private: query v1_run.';
