-- Answered requests, for operators. Rows are kept for 30 days and dropped by whole days.
-- Not every request has a row: see request_minute.not_stored.
-- Sorted by time, so inserts append. A server numbers its rows: a repeated insert writes rows
-- with the same key, which replace the first ones. The index by id finds a row without its time.
-- The index by account serves the newest requests of one account: without it, a read for an
-- account with few requests reads all rows of a day.
CREATE TABLE IF NOT EXISTS request
(
    at DateTime64(3, 'UTC') COMMENT 'Arrival of the request' CODEC(Delta(8), ZSTD(1)),
    id String COMMENT 'X-Request-Id of the answer; callers may send one id several times' CODEC(ZSTD(1)),
    account_id LowCardinality(String) COMMENT 'Account of the key; empty without a valid key',
    key_id LowCardinality(String) COMMENT 'Key; empty without a valid key',
    route LowCardinality(String) COMMENT 'Pattern of the address, such as /v1/score/*; none if no route answered',
    status UInt16 COMMENT 'Status of the answer' CODEC(ZSTD(1)),
    error_code LowCardinality(String) COMMENT 'Error code of the answer; empty below 400',
    answered_by LowCardinality(String) COMMENT 'What answered: sandbox, l1 or table (memory), redis, clickhouse, or none',
    took_us UInt64 COMMENT 'Time from arrival to the answer in microseconds' CODEC(T64, ZSTD(1)),
    bytes UInt64 COMMENT 'Size of the body of the answer in bytes, as it was sent' CODEC(T64, ZSTD(1)),
    charged Bool COMMENT 'Whether the request was charged as a cold call' CODEC(ZSTD(1)),
    job_id String COMMENT 'Job of an answer 202; empty otherwise' CODEC(ZSTD(1)),
    server LowCardinality(String) COMMENT 'Process that answered',
    number UInt64 COMMENT 'Number of the row among those of the process' CODEC(Delta(8), ZSTD(1)),
    INDEX by_id id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX by_account account_id TYPE set(64) GRANULARITY 1
)
ENGINE = ReplacingMergeTree
PARTITION BY toDate(at)
ORDER BY (at, server, number)
TTL toDateTime(at) + INTERVAL 30 DAY
SETTINGS ttl_only_drop_parts = 1
COMMENT 'Answered requests of the last 30 days. Private; query v1_request.';
