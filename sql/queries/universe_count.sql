-- name: universe_count
-- Notes the standing of every company whose hash lies within a range, as of the records of one pipeline version inserted up
-- to a position and scored up to an instant. Everything in one pass: the newest record and those before each window.
-- params: generation UInt64, note UInt64, position UInt64, version String, first UInt64, last UInt64 (of the range, both in it), end_ms Int64,
-- start_7d_ms Int64, start_30d_ms Int64, start_90d_ms Int64.
INSERT INTO universe_company (generation, position, company, latest, standing, before)
SELECT {generation:UInt64}, {note:UInt64}, company, newest, newest_standing, week + bitShiftLeft(month, 16) + bitShiftLeft(quarter, 32)
FROM
(
    SELECT
        company, max(stamp) AS newest, argMax(standing, stamp) AS newest_standing,
        maxIf(stamp, stamp < bitShiftLeft(toUInt128({start_7d_ms:Int64}), 64)) AS last_7d,
        maxIf(stamp, stamp < bitShiftLeft(toUInt128({start_30d_ms:Int64}), 64)) AS last_30d,
        maxIf(stamp, stamp < bitShiftLeft(toUInt128({start_90d_ms:Int64}), 64)) AS last_90d,
        if(last_7d = 0, 65535, bitAnd(toUInt64(last_7d), 16383)) AS week,
        if(last_30d = 0, 65535, bitAnd(toUInt64(last_30d), 16383)) AS month,
        if(last_90d = 0, 65535, bitAnd(toUInt64(last_90d), 16383)) AS quarter
    FROM universe_record
    WHERE pipeline_version = {version:String} AND company >= {first:UInt64} AND company <= {last:UInt64}
        AND _block_number <= {position:UInt64} AND stamp < bitShiftLeft(toUInt128({end_ms:Int64} + 1), 64)
    GROUP BY company
)
SETTINGS max_threads = 1, min_insert_block_size_rows = 1048576, max_insert_block_size = 1048576, min_insert_block_size_bytes = 0
