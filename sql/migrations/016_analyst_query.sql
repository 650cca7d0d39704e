-- Statements of analysts. The embedded ClickHouse writes it; a server has system.query_log. v1_query shows either. It may be lost.
CREATE TABLE IF NOT EXISTS analyst_query
(
    started_at DateTime64(3, 'UTC') COMMENT 'When the statement arrived',
    analyst LowCardinality(String) COMMENT 'Name of the analyst',
    query_id String COMMENT 'Id in X-ClickHouse-Query-Id',
    query String COMMENT 'Text of the statement, its first 10,000 bytes' CODEC(ZSTD(3)),
    wait_ms UInt64 COMMENT 'Wait for a slot',
    duration_ms UInt64 COMMENT 'From arrival until the client had the answer, with the wait',
    read_rows UInt64 COMMENT 'Rows read; 0 if it failed',
    read_bytes UInt64 COMMENT 'Bytes read, uncompressed; 0 if it failed',
    result_rows UInt64 COMMENT 'Rows of the answer; 0 if it failed',
    result_bytes UInt64 COMMENT 'Bytes of the answer, before its format; 0 if it failed',
    exception_code Int32 COMMENT 'Code of the exception, 0 without one',
    exception LowCardinality(String) COMMENT 'Name of the exception, empty without one'
)
ENGINE = MergeTree
ORDER BY (started_at, analyst)
TTL toDateTime(started_at) + INTERVAL 30 DAY
COMMENT 'Statements of analysts of the last 30 days. Private; see v1_query.';
