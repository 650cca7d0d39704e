-- What became of each cold run, for operators: kept 90 days, then dropped whole
-- weeks at a time. Records themselves are kept forever in score_history.
-- The version is made of state and attempts and not of a clock: the row that got
-- furthest counts, in whatever order rows of several processes arrive.
CREATE TABLE IF NOT EXISTS run_log
(
    created_at DateTime64(3, 'UTC') COMMENT 'When the run was asked for' CODEC(Delta(8), ZSTD(1)),
    id String COMMENT 'Run id' CODEC(ZSTD(1)),
    domain String COMMENT 'Canonical host name that is scored' CODEC(ZSTD(1)),
    state Enum8('queued' = 1, 'running' = 2, 'succeeded' = 3, 'failed' = 4, 'timed_out' = 5, 'aborted' = 6) COMMENT 'How far the run came; the last four are final',
    lane LowCardinality(String) COMMENT 'Lane in which the run waited. api: a customer called. refresh: the refresh job started it. bulk: an operator did',
    started_at DateTime64(3, 'UTC') COMMENT 'Start of the first attempt; 1970-01-01 when it never started' CODEC(Delta(8), ZSTD(1)),
    finished_at DateTime64(3, 'UTC') COMMENT 'End of the run; 1970-01-01 while it is not final' CODEC(Delta(8), ZSTD(1)),
    scored_at DateTime64(3, 'UTC') COMMENT 'scored_at of the record it made; 1970-01-01 when it made none' CODEC(Delta(8), ZSTD(1)),
    attempts UInt16 COMMENT 'Attempts so far',
    error String COMMENT 'Explanation of a failure for operators; empty when there was none' CODEC(ZSTD(1)),
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
