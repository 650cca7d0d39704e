-- name: engine_load
-- Rows and bytes that the engine has read since its start, for all clients, and its memory in use: 1 row.
SELECT
    sumIf(value, event = 'SelectedRows') AS read_rows, sumIf(value, event = 'SelectedBytes') AS read_bytes,
    (SELECT toUInt64(greatest(sum(value), 0)) FROM system.metrics WHERE metric = 'MemoryTracking') AS memory_bytes
FROM system.events
