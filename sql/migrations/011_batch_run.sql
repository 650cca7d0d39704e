-- What became of each run of a batch job; written when the run ends, kept for 400 days.
CREATE TABLE IF NOT EXISTS batch_run
(
    started_at DateTime64(3, 'UTC') COMMENT 'When the run began' CODEC(Delta(8), ZSTD(1)),
    job LowCardinality(String) COMMENT 'count (rank, distribution and cohorts), movers, refresh (runs for companies that have become old) or housekeeping',
    id String COMMENT 'UUID of the run' CODEC(ZSTD(1)),
    fence UInt64 COMMENT 'Number of the leader that ran it; later leaders have larger ones',
    took_ms UInt64 COMMENT 'How long it took, in milliseconds',
    read_rows UInt64 COMMENT 'Rows that the engine read while it ran, for anybody',
    read_bytes UInt64 COMMENT 'Bytes that the engine read while it ran, for anybody',
    peak_memory_bytes UInt64 COMMENT 'Most memory that the engine had in use while it ran, for anybody',
    companies UInt64 COMMENT 'Companies that were counted, by count and refresh; 0 for other jobs',
    young UInt64 COMMENT 'refresh: companies younger than their target age; 0 for other jobs',
    due UInt64 COMMENT 'refresh: companies older than that of which a run could learn something new; 0 for other jobs',
    started UInt64 COMMENT 'refresh: runs that it started; 0 for other jobs',
    oldest_scored_at DateTime64(3, 'UTC') COMMENT 'refresh: when the newest record of the oldest company was made; 1970-01-01 without companies and for other jobs',
    outcome Enum8('ok' = 1, 'failed' = 2) COMMENT 'failed: the last good result stays',
    error String COMMENT 'Why it failed; empty when it did not' CODEC(ZSTD(1))
)
ENGINE = MergeTree
PARTITION BY toYear(started_at)
ORDER BY (started_at, job)
TTL toDateTime(started_at) + INTERVAL 400 DAY
COMMENT 'Runs of batch jobs. Private: query v1_run.';
