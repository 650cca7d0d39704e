-- name: universe_advance
-- Notes the new standing of each company of whose records a batch takes some into account, and takes back the one that was
-- counted before. Old standings come from the notes, so that history is not read, but for companies that got a record of the past.
-- Changes of the old standing are those of the windows of then, and not read either.
-- params: generation UInt64, note UInt64 and was_note UInt64 (this batch and the one before), version String, position UInt64 (records inserted up to
-- it count), first UInt64, last UInt64 (of a range of companies, both in it), end_ms Int64, start_7d_ms Int64, start_30d_ms Int64, start_90d_ms Int64,
-- and was_start_7d_ms, was_start_30d_ms, was_start_90d_ms Int64, which are those of the batch before.
INSERT INTO universe_company (generation, position, company, sign, latest, standing, before, delta_7d, delta_30d, delta_90d)
SELECT
    {generation:UInt64}, {note:UInt64}, company, sign, stamp, standing, week + bitShiftLeft(month, 16) + bitShiftLeft(quarter, 32),
    if(week = 65535 OR stamp < week_start, 0, composite - toInt16(week)), if(month = 65535 OR stamp < month_start, 0, composite - toInt16(month)),
    if(quarter = 65535 OR stamp < quarter_start, 0, composite - toInt16(quarter))
FROM
(
    SELECT
        company, sign, if(sign = 1, newest, old) AS stamp, if(sign = 1, newest_standing, old_standing) AS standing,
        toInt16(bitAnd(toUInt64(if(sign = 1, newest, old)), 16383)) AS composite,
        if(sign = -1 OR last_7d = 0 AND NOT anew, bitAnd(old_before, 65535), if(last_7d = 0, 65535, bitAnd(toUInt64(last_7d), 16383))) AS week,
        if(sign = -1 OR last_30d = 0 AND NOT anew, bitAnd(bitShiftRight(old_before, 16), 65535), if(last_30d = 0, 65535, bitAnd(toUInt64(last_30d), 16383))) AS month,
        if(sign = -1 OR last_90d = 0 AND NOT anew, bitAnd(bitShiftRight(old_before, 32), 65535), if(last_90d = 0, 65535, bitAnd(toUInt64(last_90d), 16383))) AS quarter,
        bitShiftLeft(toUInt128(if(sign = 1, {start_7d_ms:Int64}, {was_start_7d_ms:Int64})), 64) AS week_start,
        bitShiftLeft(toUInt128(if(sign = 1, {start_30d_ms:Int64}, {was_start_30d_ms:Int64})), 64) AS month_start,
        bitShiftLeft(toUInt128(if(sign = 1, {start_90d_ms:Int64}, {was_start_90d_ms:Int64})), 64) AS quarter_start
    FROM
    (
        SELECT
            company, max(latest) AS newest, argMaxIf(standing, latest, standing > 0) AS newest_standing, max(kind) = 2 AS anew,
            maxIf(latest, latest < bitShiftLeft(toUInt128({start_7d_ms:Int64}), 64) AND (kind = 2 OR kind = 0 AND latest >= bitShiftLeft(toUInt128({was_start_7d_ms:Int64}), 64))) AS last_7d,
            maxIf(latest, latest < bitShiftLeft(toUInt128({start_30d_ms:Int64}), 64) AND (kind = 2 OR kind = 0 AND latest >= bitShiftLeft(toUInt128({was_start_30d_ms:Int64}), 64))) AS last_30d,
            maxIf(latest, latest < bitShiftLeft(toUInt128({start_90d_ms:Int64}), 64) AND (kind = 2 OR kind = 0 AND latest >= bitShiftLeft(toUInt128({was_start_90d_ms:Int64}), 64))) AS last_90d,
            maxIf(latest, kind = 1) AS old, argMaxIf(standing, latest, kind = 1) AS old_standing,
            if(old = 0, toUInt64(0xFFFFFFFFFFFF), argMaxIf(before, position, kind = 1)) AS old_before
        FROM
        (
            SELECT company, position, sign AS kind, latest, standing, before
            FROM universe_company
            WHERE generation = {generation:UInt64} AND company >= {first:UInt64} AND company <= {last:UInt64} AND (sign = 1 AND position <= {was_note:UInt64} OR sign = 0 AND position = {note:UInt64}) AND company IN
            (
                SELECT company FROM universe_company
                WHERE generation = {generation:UInt64} AND company >= {first:UInt64} AND company <= {last:UInt64} AND position = {note:UInt64} AND sign IN (0, 2)
            )
            UNION ALL
            SELECT company, {note:UInt64}, 2, stamp, standing, 0
            FROM universe_record
            WHERE pipeline_version = {version:String} AND company >= {first:UInt64} AND company <= {last:UInt64}
                AND _block_number <= {position:UInt64} AND stamp < bitShiftLeft(toUInt128({end_ms:Int64} + 1), 64) AND company IN
                (
                    SELECT company FROM universe_company
                    WHERE generation = {generation:UInt64} AND company >= {first:UInt64} AND company <= {last:UInt64} AND position = {note:UInt64} AND sign = 2
                )
        )
        GROUP BY company
    )
    ARRAY JOIN if(old > 0, [1, -1], [1]) AS sign
)
SETTINGS max_threads = 1, min_insert_block_size_rows = 1048576, max_insert_block_size = 1048576, min_insert_block_size_bytes = 0
