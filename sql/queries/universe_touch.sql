-- name: universe_touch
-- Gathers the records that a batch takes into account: those that came since the batch before, and those that the start or end of
-- a window has passed. The names of parts (partition, first and last insert, level) say where they lie: what came in the few parts of
-- late inserts, and what was passed in the others, where a projection has it in order of time. A part with both is
-- read as a whole, as only rows know their insert. All three look at the same parts, whatever is merged meanwhile.
-- What came and is older than the start of a window is late: whether it comes before or after what was counted, only the records can
-- tell. So is what was made ahead of the clock of the batch before.
-- params: note UInt64 (this batch), version String, since UInt64 and position UInt64 (counted were those up to since; now up to position),
-- end_ms Int64, start_7d_ms Int64, start_30d_ms Int64, start_90d_ms Int64, and was_end_ms, was_start_7d_ms, was_start_30d_ms,
-- was_start_90d_ms Int64, which are those of the batch before.
INSERT INTO universe_touched (note, company, how, stamp, standing)
SELECT {note:UInt64}, company, how, stamp, standing
FROM
(
    SELECT company, if(stamp < bitShiftLeft(toUInt128({start_7d_ms:Int64}), 64), 2, 0) AS how, stamp, standing
    FROM universe_record
    PREWHERE _block_number > {since:UInt64}
    WHERE toUInt64(extract(_part, '^[^_]+_[0-9]+_([0-9]+)')) > {since:UInt64} AND _partition_value.1 = {version:String} AND _block_number <= {position:UInt64}
        AND stamp < bitShiftLeft(toUInt128({end_ms:Int64} + 1), 64)
    UNION ALL
    SELECT company, if(stamp >= bitShiftLeft(toUInt128({was_end_ms:Int64} + 1), 64), 2, 1), stamp, 0
    FROM
    (
        SELECT company, stamp FROM universe_record
        WHERE toUInt64(extract(_part, '^[^_]+_[0-9]+_([0-9]+)')) <= {since:UInt64} AND _partition_value.1 = {version:String}
            AND (stamp >= bitShiftLeft(toUInt128({was_start_7d_ms:Int64}), 64) AND stamp < bitShiftLeft(toUInt128({start_7d_ms:Int64}), 64)
                OR stamp >= bitShiftLeft(toUInt128({was_start_30d_ms:Int64}), 64) AND stamp < bitShiftLeft(toUInt128({start_30d_ms:Int64}), 64)
                OR stamp >= bitShiftLeft(toUInt128({was_start_90d_ms:Int64}), 64) AND stamp < bitShiftLeft(toUInt128({start_90d_ms:Int64}), 64)
                OR stamp >= bitShiftLeft(toUInt128({was_end_ms:Int64} + 1), 64) AND stamp < bitShiftLeft(toUInt128({end_ms:Int64} + 1), 64))
        UNION ALL
        SELECT company, stamp FROM universe_record
        WHERE toUInt64(extract(_part, '^[^_]+_([0-9]+)')) <= {since:UInt64} AND toUInt64(extract(_part, '^[^_]+_[0-9]+_([0-9]+)')) > {since:UInt64}
            AND _partition_value.1 = {version:String} AND _block_number <= {since:UInt64}
            AND (stamp >= bitShiftLeft(toUInt128({was_start_7d_ms:Int64}), 64) AND stamp < bitShiftLeft(toUInt128({start_7d_ms:Int64}), 64)
                OR stamp >= bitShiftLeft(toUInt128({was_start_30d_ms:Int64}), 64) AND stamp < bitShiftLeft(toUInt128({start_30d_ms:Int64}), 64)
                OR stamp >= bitShiftLeft(toUInt128({was_start_90d_ms:Int64}), 64) AND stamp < bitShiftLeft(toUInt128({start_90d_ms:Int64}), 64)
                OR stamp >= bitShiftLeft(toUInt128({was_end_ms:Int64} + 1), 64) AND stamp < bitShiftLeft(toUInt128({end_ms:Int64} + 1), 64))
    )
)
SETTINGS enable_shared_storage_snapshot_in_query = 1
