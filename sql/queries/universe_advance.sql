-- name: universe_advance
-- Notes how each company is counted now of whose records a batch takes some into account, and how it was. That comes from its newest note,
-- so that history is not read, but for companies with a late record. A record that is not the newest and
-- that no window has passed needs no note.
-- Scores before the windows change only where a window has passed a record, which is rare: they are found apart, as the bits of
-- before to clear and the bits to set.
-- params: generation UInt64, note UInt64 and was_note UInt64 (this batch and the one before), version String, position UInt64 (records inserted up to
-- it count), first UInt64, last UInt64 (of a range of companies, both in it), end_ms Int64, start_7d_ms Int64, start_30d_ms Int64, start_90d_ms Int64,
-- and was_start_7d_ms, was_start_30d_ms, was_start_90d_ms Int64, which are those of the batch before.
INSERT INTO universe_company (generation, position, company, latest, standing, before, was_composite, was_standing, was_before)
SELECT
    {generation:UInt64}, {note:UInt64}, company, toUInt128(bitShiftRight(greatest(newest, newest_of_all) AS counted, 128)), toUInt128(counted),
    bitOr(bitAnd(until_now, bitNot(cleared)), passed), toUInt16(bitAnd(bitShiftRight(was, 128), 16383)), toUInt128(was), until_now
FROM
(
    SELECT company, max(record) AS newest, max(noted) AS was, if(was = 0, 0xFFFFFFFFFFFF, toUInt64(max(place))) AS until_now
    FROM
    (
        SELECT company, bitOr(bitShiftLeft(toUInt256(latest), 128), standing) AS record, record AS noted, bitOr(bitShiftLeft(toUInt128(position), 64), before) AS place
        FROM universe_company
        WHERE generation = {generation:UInt64} AND company >= {first:UInt64} AND company <= {last:UInt64} AND position <= {was_note:UInt64}
            AND company IN (SELECT company FROM universe_touched WHERE note = {note:UInt64} AND company >= {first:UInt64} AND company <= {last:UInt64})
        UNION ALL
        SELECT company, bitOr(bitShiftLeft(toUInt256(stamp), 128), standing), 0, 0
        FROM universe_touched
        WHERE note = {note:UInt64} AND company >= {first:UInt64} AND company <= {last:UInt64}
    )
    GROUP BY company
) AS n
LEFT ANY JOIN
(
    SELECT
        company, max(record) AS newest_of_all, if(max(late), 0xFFFFFFFFFFFF, (last_7d > 0) * 0xFFFF + (last_30d > 0) * 0xFFFF0000 + (last_90d > 0) * 0xFFFF00000000) AS cleared,
        maxIf(stamp, stamp < bitShiftLeft(toUInt128({start_7d_ms:Int64}), 64) AND (late OR stamp >= bitShiftLeft(toUInt128({was_start_7d_ms:Int64}), 64))) AS last_7d,
        maxIf(stamp, stamp < bitShiftLeft(toUInt128({start_30d_ms:Int64}), 64) AND (late OR stamp >= bitShiftLeft(toUInt128({was_start_30d_ms:Int64}), 64))) AS last_30d,
        maxIf(stamp, stamp < bitShiftLeft(toUInt128({start_90d_ms:Int64}), 64) AND (late OR stamp >= bitShiftLeft(toUInt128({was_start_90d_ms:Int64}), 64))) AS last_90d,
        bitAnd(cleared, if(last_7d = 0, 65535, bitAnd(toUInt64(last_7d), 16383)) + bitShiftLeft(if(last_30d = 0, 65535, bitAnd(toUInt64(last_30d), 16383)), 16)
            + bitShiftLeft(if(last_90d = 0, 65535, bitAnd(toUInt64(last_90d), 16383)), 32)) AS passed
    FROM
    (
        SELECT company, 0 AS late, stamp, toUInt256(0) AS record FROM universe_touched
        WHERE note = {note:UInt64} AND how = 'passed' AND company >= {first:UInt64} AND company <= {last:UInt64}
        UNION ALL
        SELECT company, 1, stamp, bitOr(bitShiftLeft(toUInt256(stamp), 128), standing) FROM universe_record
        WHERE pipeline_version = {version:String} AND company >= {first:UInt64} AND company <= {last:UInt64}
            AND _block_number <= {position:UInt64} AND stamp < bitShiftLeft(toUInt128({end_ms:Int64} + 1), 64)
            AND company IN (SELECT company FROM universe_touched WHERE note = {note:UInt64} AND how = 'late' AND company >= {first:UInt64} AND company <= {last:UInt64})
    )
    GROUP BY company
) AS p ON p.company = n.company
WHERE counted != was OR cleared != 0
SETTINGS max_threads = 1, min_insert_block_size_rows = 1048576, max_insert_block_size = 1048576, min_insert_block_size_bytes = 0
