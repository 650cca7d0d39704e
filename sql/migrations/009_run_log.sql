-- Cold runs, for operators. Rows are kept for 90 days and dropped by whole weeks.
-- Records are in score_history forever.
-- The engine's version is made of state and attempts, not of a clock: the row with
-- the most progress counts, whatever order rows of several processes arrive in.
CREATE TABLE IF NOT EXISTS run_log
(
    created_at DateTime64(3, 'UTC') COMMENT 'When the run was queued' CODEC(Delta(8), ZSTD(1)),
    id String COMMENT 'Id of the run' CODEC(ZSTD(1)),
    domain String COMMENT 'Canonical host name of the company' CODEC(ZSTD(1)),
    state Enum8('queued' = 1, 'running' = 2, 'succeeded' = 3, 'failed' = 4, 'timed_out' = 5, 'aborted' = 6) COMMENT 'State of the run; the last four are final',
    lane LowCardinality(String) COMMENT 'Lane of the run. api: call of a customer. refresh: started by the refresh job. bulk: started by an operator',
    started_at DateTime64(3, 'UTC') COMMENT 'Start of the first attempt; 1970-01-01 when there was none' CODEC(Delta(8), ZSTD(1)),
    finished_at DateTime64(3, 'UTC') COMMENT 'End of the run; 1970-01-01 while it is not final' CODEC(Delta(8), ZSTD(1)),
    scored_at DateTime64(3, 'UTC') COMMENT 'scored_at of its record; 1970-01-01 without a record' CODEC(Delta(8), ZSTD(1)),
    attempts UInt16 COMMENT 'Number of attempts',
    error String COMMENT 'Cause of a failure, for operators; empty otherwise' CODEC(ZSTD(1)),
    revision UInt32 COMMENT 'Progress of the run; of rows with one id the largest counts',
    INDEX by_domain domain TYPE bloom_filter(0.01) GRANULARITY 4,
    INDEX by_id id TYPE bloom_filter(0.01) GRANULARITY 4,
    CONSTRAINT id_given CHECK id != ''
)
ENGINE = ReplacingMergeTree(revision)
PARTITION BY toMonday(created_at)
ORDER BY (created_at, id)
TTL toDateTime(created_at) + INTERVAL 90 DAY
SETTINGS index_granularity = 1024, ttl_only_drop_parts = 1
COMMENT 'Cold runs of the last 90 days. Private; reads need FINAL.';
