-- name: log_exists
-- Whether ClickHouse logs statements in system.query_log: 1 row. columns: logs UInt64, 1 or 0. The embedded ClickHouse does not.
SELECT count() AS logs FROM system.tables WHERE database = 'system' AND name = 'query_log'
