-- Statements of analysts and their cost, on a server with system.query_log. The view of the embedded ClickHouse is in the directory above.
CREATE OR REPLACE VIEW v1_query
(
    `started_at` DateTime64(3, 'UTC') COMMENT 'When the statement arrived',
    `analyst` String COMMENT 'Name of the analyst',
    `query_id` String COMMENT 'Id of the statement, as in X-ClickHouse-Query-Id',
    `query` String COMMENT 'Text of the statement',
    `outcome` String COMMENT 'ok, refused (by a limit or a right) or failed',
    `refused_by` String COMMENT 'Limit or right that refused the statement: memory, time, result, statements, setting or access; empty otherwise',
    `exception` String COMMENT 'Name of the exception; empty without one',
    `duration_ms` UInt64 COMMENT 'Duration; of the embedded ClickHouse with the wait for a slot and until the client had the answer',
    `wait_ms` UInt64 COMMENT 'Wait for a slot; 0 on a server',
    `read_rows` UInt64 COMMENT 'Rows read; 0 for a statement that failed in the embedded ClickHouse',
    `read_bytes` UInt64 COMMENT 'Bytes read, uncompressed; 0 for a statement that failed in the embedded ClickHouse',
    `result_rows` UInt64 COMMENT 'Rows of the answer',
    `result_bytes` UInt64 COMMENT 'Bytes of the answer, before its format'
)
AS SELECT
    toDateTime64(query_start_time_microseconds, 3, 'UTC') AS started_at, toString(user) AS analyst, l.query_id AS query_id, l.query AS query,
    multiIf(exception_code = 0, 'ok', refused_by != '', 'refused', 'failed') AS outcome,
    transform(exception, ['MEMORY_LIMIT_EXCEEDED', 'TIMEOUT_EXCEEDED', 'TOO_MANY_ROWS_OR_BYTES', 'TOO_MANY_SIMULTANEOUS_QUERIES', 'SETTING_CONSTRAINT_VIOLATION', 'ACCESS_DENIED', 'READONLY', 'QUOTA_EXCEEDED'],
        ['memory', 'time', 'result', 'statements', 'setting', 'access', 'access', 'statements'], '') AS refused_by,
    if(exception_code = 0, '', errorCodeToName(exception_code)) AS exception, query_duration_ms AS duration_ms, toUInt64(0) AS wait_ms,
    l.read_rows AS read_rows, l.read_bytes AS read_bytes, l.result_rows AS result_rows, l.result_bytes AS result_bytes
FROM system.query_log AS l
WHERE is_initial_query AND type != 'QueryStart' AND user NOT IN ('companyscore', 'default') AND event_date >= today() - 30
COMMENT 'Statements of analysts of the last 30 days. One row per statement.';
