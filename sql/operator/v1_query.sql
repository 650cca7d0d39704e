-- Statements of analysts and their cost, from the table of the embedded ClickHouse. server/v1_query.sql has the same columns from system.query_log.
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
    started_at, toString(analyst) AS analyst, query_id, query,
    multiIf(exception_code = 0, 'ok', refused_by != '', 'refused', 'failed') AS outcome,
    transform(toString(exception), ['MEMORY_LIMIT_EXCEEDED', 'TIMEOUT_EXCEEDED', 'TOO_MANY_ROWS_OR_BYTES', 'TOO_MANY_SIMULTANEOUS_QUERIES', 'SETTING_CONSTRAINT_VIOLATION', 'ACCESS_DENIED', 'READONLY'],
        ['memory', 'time', 'result', 'statements', 'setting', 'access', 'access'], '') AS refused_by,
    toString(exception) AS exception, duration_ms, wait_ms, read_rows, read_bytes, result_rows, result_bytes
FROM analyst_query AS q
COMMENT 'Statements of analysts of the last 30 days. One row per statement.';
