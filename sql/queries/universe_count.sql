-- name: universe_count
-- Notes the standing of every company whose hash lies within a range, as of the records of one pipeline version inserted up
-- to a position and scored up to an instant. Everything in one pass: the newest record and those before each window.
-- params: generation UInt64, note UInt64, position UInt64, version String, first UInt64, last UInt64 (of the range, both in it), end_ms Int64,
-- start_7d_ms Int64, start_30d_ms Int64, start_90d_ms Int64.
INSERT INTO universe_company (generation, position, company, sign, latest, standing, before_7d, before_30d, before_90d, delta_7d, delta_30d, delta_90d)
SELECT
    {generation:UInt64}, {note:UInt64}, company, 1, newest, newest_standing, week, month, quarter,
    if(week = 0 OR newest < bitShiftLeft(toUInt128({start_7d_ms:Int64}), 64), 0, toInt16(bitAnd(toUInt64(newest), 16383)) - toInt16(bitAnd(toUInt64(week), 16383))),
    if(month = 0 OR newest < bitShiftLeft(toUInt128({start_30d_ms:Int64}), 64), 0, toInt16(bitAnd(toUInt64(newest), 16383)) - toInt16(bitAnd(toUInt64(month), 16383))),
    if(quarter = 0 OR newest < bitShiftLeft(toUInt128({start_90d_ms:Int64}), 64), 0, toInt16(bitAnd(toUInt64(newest), 16383)) - toInt16(bitAnd(toUInt64(quarter), 16383)))
FROM
(
    SELECT
        company, max(stamp) AS newest, argMax(standing, stamp) AS newest_standing,
        maxIf(stamp, stamp < bitShiftLeft(toUInt128({start_7d_ms:Int64}), 64)) AS week,
        maxIf(stamp, stamp < bitShiftLeft(toUInt128({start_30d_ms:Int64}), 64)) AS month,
        maxIf(stamp, stamp < bitShiftLeft(toUInt128({start_90d_ms:Int64}), 64)) AS quarter
    FROM universe_record
    WHERE pipeline_version = {version:String} AND company >= {first:UInt64} AND company <= {last:UInt64}
        AND _block_number <= {position:UInt64} AND stamp < bitShiftLeft(toUInt128({end_ms:Int64} + 1), 64)
    GROUP BY company
)
SETTINGS max_insert_threads = 4, min_insert_block_size_rows = 1048576, max_insert_block_size = 1048576, min_insert_block_size_bytes = 0
