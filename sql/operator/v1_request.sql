-- Answered requests of the last 30 days, with the names of account and key. For operators.
CREATE OR REPLACE VIEW v1_request
(
    `at` DateTime64(3, 'UTC') COMMENT 'Arrival of the request',
    `id` String COMMENT 'X-Request-Id of the answer; callers may send one id several times',
    `account_id` LowCardinality(String) COMMENT 'Account of the key; empty without a valid key',
    `account_name` String COMMENT 'Name of the account',
    `key_id` LowCardinality(String) COMMENT 'Key; empty without a valid key',
    `key_name` String COMMENT 'Name of the key; may be empty',
    `key_prefix` String COMMENT 'Public first characters of the key',
    `route` LowCardinality(String) COMMENT 'Pattern of the address, such as /v1/score/*; none if no route answered',
    `status` UInt16 COMMENT 'Status of the answer',
    `error_code` LowCardinality(String) COMMENT 'Error code of the answer; empty below 400',
    `answered_by` LowCardinality(String) COMMENT 'What answered: sandbox, l1 or table (memory), redis, clickhouse, or none',
    `took_us` UInt64 COMMENT 'Time from arrival to the answer in microseconds',
    `bytes` UInt64 COMMENT 'Size of the body of the answer in bytes, as it was sent',
    `charged` Bool COMMENT 'Whether the request was charged as a cold call',
    `job_id` String COMMENT 'Job of an answer 202; empty otherwise',
    `server` LowCardinality(String) COMMENT 'Process that answered'
)
AS SELECT
    r.at, r.id, r.account_id, a.name AS account_name, r.key_id, k.name AS key_name, k.prefix AS key_prefix, r.route, r.status, r.error_code, r.answered_by,
    r.took_us, r.bytes, r.charged, r.job_id, r.server
FROM (SELECT * FROM request FINAL) AS r
LEFT JOIN (SELECT id, name FROM account FINAL) AS a ON a.id = r.account_id
LEFT JOIN (SELECT id, name, prefix FROM api_key FINAL) AS k ON k.id = r.key_id
COMMENT 'Answered requests. Rows are seconds behind. Not every request has a row: v1_request_minute counts all.';
