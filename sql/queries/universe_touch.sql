-- name: universe_touch
-- Notes the records that a batch takes into account: those that came since the batch before, and those that the start or end of
-- a window has passed. The two are looked for apart: what came lies in the few parts whose names (partition, first and last insert, level)
-- say so, and where the records of a time lie is kept beside the others. What came and is older than the start of a window has
-- sign 2: whether it comes before or after what was counted, only the records can tell. What the start of a window has passed was counted
-- before, so that only its stamp matters, which spares reading from one more place for each. These are single rows all over the disk:
-- hence small reads, and many at a time.
-- params: generation UInt64, note UInt64 (this batch), version String, since UInt64 and position UInt64 (counted were those up to since; now up to position),
-- end_ms Int64, start_7d_ms Int64, start_30d_ms Int64, start_90d_ms Int64, and was_end_ms, was_start_7d_ms, was_start_30d_ms,
-- was_start_90d_ms Int64, which are those of the batch before.
INSERT INTO universe_company (generation, position, company, sign, latest, standing)
SELECT {generation:UInt64}, {note:UInt64}, company, sign, stamp, standing
FROM
(
    SELECT company, if(stamp < bitShiftLeft(toUInt128({was_start_7d_ms:Int64}), 64), 2, 0) AS sign, stamp, standing
    FROM universe_record
    PREWHERE _block_number > {since:UInt64}
    WHERE toUInt64(splitByChar('_', _part)[3]) > {since:UInt64} AND _partition_value.1 = {version:String} AND _block_number <= {position:UInt64}
        AND stamp < bitShiftLeft(toUInt128({end_ms:Int64} + 1), 64)
    UNION ALL
    SELECT company, 0, stamp, standing
    FROM universe_record
    PREWHERE scored_second >= toDateTime(intDiv({was_end_ms:Int64}, 1000))
    WHERE toUInt64(splitByChar('_', _part)[2]) <= {since:UInt64} AND _partition_value.1 = {version:String} AND _block_number <= {since:UInt64}
        AND stamp >= bitShiftLeft(toUInt128({was_end_ms:Int64} + 1), 64) AND stamp < bitShiftLeft(toUInt128({end_ms:Int64} + 1), 64)
    UNION ALL
    SELECT company, 0, stamp, 0
    FROM universe_record
    PREWHERE scored_second >= toDateTime(intDiv({was_start_7d_ms:Int64}, 1000)) AND scored_second <= toDateTime(intDiv({start_7d_ms:Int64}, 1000))
        OR scored_second >= toDateTime(intDiv({was_start_30d_ms:Int64}, 1000)) AND scored_second <= toDateTime(intDiv({start_30d_ms:Int64}, 1000))
        OR scored_second >= toDateTime(intDiv({was_start_90d_ms:Int64}, 1000)) AND scored_second <= toDateTime(intDiv({start_90d_ms:Int64}, 1000))
    WHERE toUInt64(splitByChar('_', _part)[2]) <= {since:UInt64} AND _partition_value.1 = {version:String} AND _block_number <= {since:UInt64}
        AND (stamp >= bitShiftLeft(toUInt128({was_start_7d_ms:Int64}), 64) AND stamp < bitShiftLeft(toUInt128({start_7d_ms:Int64}), 64)
            OR stamp >= bitShiftLeft(toUInt128({was_start_30d_ms:Int64}), 64) AND stamp < bitShiftLeft(toUInt128({start_30d_ms:Int64}), 64)
            OR stamp >= bitShiftLeft(toUInt128({was_start_90d_ms:Int64}), 64) AND stamp < bitShiftLeft(toUInt128({start_90d_ms:Int64}), 64))
)
SETTINGS min_table_rows_to_use_projection_index = 0, max_read_buffer_size_local_fs = 16384, max_threads = 8
