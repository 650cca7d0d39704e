-- What became of each run of a batch job; written when the run ends, kept for 400 days.
CREATE TABLE IF NOT EXISTS batch_run
(
    started_at DateTime64(3, 'UTC') COMMENT 'When the run began' CODEC(Delta(8), ZSTD(1)),
    job LowCardinality(String) COMMENT 'rank, distribution, cohorts, movers_7d, movers_30d, movers_90d, count or housekeeping',
    id String COMMENT 'UUID of the run' CODEC(ZSTD(1)),
    fence UInt64 COMMENT 'Number of the leader that ran it; later leaders have larger ones',
    took_ms UInt64 COMMENT 'How long it took, in milliseconds',
    kind LowCardinality(String) COMMENT 'full: everything was counted. incremental: what had changed. same: nothing had changed. Empty for other jobs',
    read_rows UInt64 COMMENT 'Rows that ClickHouse read for it',
    read_bytes UInt64 COMMENT 'Bytes that ClickHouse read for it',
    peak_memory_bytes UInt64 COMMENT 'Largest resident memory of the engine seen during the run; 0 when it does not tell',
    companies UInt64 COMMENT 'Companies that the result covers',
    coverage Float64 COMMENT 'Share of the companies with a record of the current pipeline version that the result covers, 0 to 1',
    outcome Enum8('ok' = 1, 'partial' = 2, 'failed' = 3) COMMENT 'partial: some of it is older than this run. failed: the last good result stays',
    error String COMMENT 'Why it failed; empty when it did not' CODEC(ZSTD(1))
)
ENGINE = MergeTree
PARTITION BY toYear(started_at)
ORDER BY (started_at, job)
TTL toDateTime(started_at) + INTERVAL 400 DAY
COMMENT 'Runs of batch jobs. Private: query v1_run.';
