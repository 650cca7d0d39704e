-- Answered requests of the last 30 days by minute, account, key, route, status, error code and what answered. For operators.
CREATE OR REPLACE VIEW v1_request_minute
(
    `minute` DateTime('UTC') COMMENT 'Start of the minute of arrival; minutes without requests have no row',
    `account_id` LowCardinality(String) COMMENT 'Account of the key; empty without a valid key',
    `key_id` LowCardinality(String) COMMENT 'Key; empty without a valid key',
    `route` LowCardinality(String) COMMENT 'Pattern of the address, such as /v1/score/*; none if no route answered',
    `status` UInt16 COMMENT 'Status of the answers',
    `error_code` LowCardinality(String) COMMENT 'Error code of the answers; empty below 400',
    `answered_by` LowCardinality(String) COMMENT 'What answered: sandbox, l1 or table (memory), redis, clickhouse, or none',
    `calls` UInt64 COMMENT 'Number of requests',
    `charged` UInt64 COMMENT 'Requests that were charged as cold calls',
    `not_stored` UInt64 COMMENT 'Requests without a row in v1_request',
    `took_us` UInt64 COMMENT 'Sum of the durations in microseconds',
    `bytes` UInt64 COMMENT 'Sum of the sizes of the bodies in bytes'
)
AS SELECT
    minute, account_id, key_id, route, status, error_code, answered_by, sum(m.calls) AS calls, sum(m.charged) AS charged,
    sum(m.not_stored) AS not_stored, sum(m.took_us) AS took_us, sum(m.bytes) AS bytes
FROM (SELECT * FROM request_minute FINAL) AS m
GROUP BY minute, account_id, key_id, route, status, error_code, answered_by
COMMENT 'Answered requests by minute, counted exactly. A count is seconds behind.';
