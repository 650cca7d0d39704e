-- The ledger: one row per charged cold call. A row with refunded set replaces the row of
-- the charge, whatever order they arrive in. Sorted by time, because the counters of the
-- last hours and of the running month are rebuilt from it.
CREATE TABLE IF NOT EXISTS cold_call
(
    at DateTime64(3, 'UTC') COMMENT 'When the call was admitted and charged' CODEC(Delta(8), ZSTD(1)),
    job_id String COMMENT 'Job of the call; identifies it' CODEC(ZSTD(1)),
    run_id String COMMENT 'Run that the call opened or joined' CODEC(ZSTD(1)),
    account_id LowCardinality(String) COMMENT 'Account that was charged',
    key_id LowCardinality(String) COMMENT 'Key of the call',
    domain String COMMENT 'Canonical host name of the company' CODEC(ZSTD(1)),
    refunded Bool COMMENT 'Whether the charge was refunded',
    CONSTRAINT job_given CHECK job_id != ''
)
ENGINE = ReplacingMergeTree(refunded)
PARTITION BY toYYYYMM(at)
ORDER BY (at, job_id)
TTL toDateTime(at) + INTERVAL 15 MONTH
SETTINGS index_granularity = 1024, ttl_only_drop_parts = 1
COMMENT 'Ledger of cold calls. Private; reads need FINAL.';
