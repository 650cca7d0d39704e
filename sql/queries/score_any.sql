-- name: score_any
-- Whether any company has a score. columns: scored UInt8; 0 or 1 row.
SELECT toUInt8(1) AS scored FROM score_latest LIMIT 1
