-- One row per charged cold call. The row that says "refunded" beats the one that
-- charged, in whatever order they arrive. Sorted by time, because the counters of
-- the last hours and of the running month are rebuilt from it.
CREATE TABLE IF NOT EXISTS cold_call
(
    at DateTime64(3, 'UTC') COMMENT 'When the call was admitted and charged' CODEC(Delta(8), ZSTD(1)),
    job_id String COMMENT 'Job that the caller polls; identifies the call' CODEC(ZSTD(1)),
    run_id String COMMENT 'Run that makes the record; several jobs may share one' CODEC(ZSTD(1)),
    account_id LowCardinality(String) COMMENT 'Account that pays',
    key_id LowCardinality(String) COMMENT 'Key that was used',
    domain String COMMENT 'Canonical host name that was asked for' CODEC(ZSTD(1)),
    refunded Bool COMMENT 'True when the charge was taken back because the run could not start',
    CONSTRAINT job_given CHECK job_id != ''
)
ENGINE = ReplacingMergeTree(refunded)
PARTITION BY toYYYYMM(at)
ORDER BY (at, job_id)
TTL toDateTime(at) + INTERVAL 15 MONTH
SETTINGS index_granularity = 1024, ttl_only_drop_parts = 1
COMMENT 'Ledger of cold calls. Private; reads need FINAL.';
