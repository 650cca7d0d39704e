-- What became of each run of a batch job; written when the run ends, kept for 400 days.
CREATE TABLE IF NOT EXISTS batch_run
(
    started_at DateTime64(3, 'UTC') COMMENT 'When the run began' CODEC(Delta(8), ZSTD(1)),
    job LowCardinality(String) COMMENT 'count (rank, distribution and cohorts), movers-7d, movers-30d, movers-90d or housekeeping',
    id String COMMENT 'UUID of the run' CODEC(ZSTD(1)),
    fence UInt64 COMMENT 'Number of the leader that ran it; later leaders have larger ones',
    took_ms UInt64 COMMENT 'How long it took, in milliseconds',
    kind LowCardinality(String) COMMENT 'full: everything was counted. incremental: what had changed. same: nothing had changed. Empty for other jobs',
    read_rows UInt64 COMMENT 'Rows that the engine read while it ran, for anybody',
    read_bytes UInt64 COMMENT 'Bytes that the engine read while it ran, for anybody',
    peak_memory_bytes UInt64 COMMENT 'Most memory that the engine had in use while it ran, for anybody',
    companies UInt64 COMMENT 'Companies that the result covers',
    coverage Float64 COMMENT 'Share of the records stored at the end of the run that the result being served covers, 0 to 1',
    outcome Enum8('ok' = 1, 'partial' = 2, 'failed' = 3) COMMENT 'partial: some of it is older than this run. failed: the last good result stays',
    error String COMMENT 'Why it failed or is partial; empty when it did not' CODEC(ZSTD(1))
)
ENGINE = MergeTree
PARTITION BY toYear(started_at)
ORDER BY (started_at, job)
TTL toDateTime(started_at) + INTERVAL 400 DAY
COMMENT 'Runs of batch jobs. Private: query v1_run.';
