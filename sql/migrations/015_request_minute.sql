-- Exact counts of answered requests. Rows are kept for 30 days and dropped by whole days.
-- A row has totals of one server for one minute, not increments: it is written again with a
-- larger version while requests arrive, and a repeated write changes nothing.
CREATE TABLE IF NOT EXISTS request_minute
(
    account_id LowCardinality(String) COMMENT 'Account of the key; empty without a valid key',
    minute DateTime('UTC') COMMENT 'Start of the minute of arrival' CODEC(Delta(4), ZSTD(1)),
    key_id LowCardinality(String) COMMENT 'Key; empty without a valid key',
    route LowCardinality(String) COMMENT 'Pattern of the address, such as /v1/score/*; none if no route answered. Empty, as account, key and error code, if a server has too many different counts in memory',
    status UInt16 COMMENT 'Status of the answers' CODEC(ZSTD(1)),
    error_code LowCardinality(String) COMMENT 'Error code of the answers; empty below 400',
    answered_by LowCardinality(String) COMMENT 'What answered: sandbox, l1 or table (memory), redis, clickhouse, or none',
    server LowCardinality(String) COMMENT 'Process that answered',
    calls UInt64 COMMENT 'Number of requests' CODEC(T64, ZSTD(1)),
    charged UInt64 COMMENT 'Requests that were charged as cold calls' CODEC(T64, ZSTD(1)),
    not_stored UInt64 COMMENT 'Requests without a row in request' CODEC(T64, ZSTD(1)),
    took_us UInt64 COMMENT 'Sum of the durations in microseconds' CODEC(T64, ZSTD(1)),
    bytes UInt64 COMMENT 'Sum of the sizes of the bodies in bytes' CODEC(T64, ZSTD(1)),
    version UInt64 COMMENT 'Number of the write; of rows with one key the largest counts'
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toDate(minute)
ORDER BY (account_id, minute, key_id, route, status, error_code, answered_by, server)
TTL minute + INTERVAL 30 DAY
SETTINGS ttl_only_drop_parts = 1
COMMENT 'Answered requests by minute and kind, of the last 30 days. Private; reads need FINAL.';
