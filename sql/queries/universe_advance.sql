-- name: universe_advance
-- Notes the new standing of each company of whose records a batch takes some into account, and takes back the one that was
-- counted before. Old standings come from the notes, so that history is not read.
-- params: generation UInt64, note UInt64 and was_note UInt64 (this batch and the one before), first UInt64, last UInt64 (of a range of companies, both
-- in it), start_7d_ms Int64, start_30d_ms Int64, start_90d_ms Int64.
INSERT INTO universe_company (generation, position, company, sign, latest, standing, before_7d, before_30d, before_90d, delta_7d, delta_30d, delta_90d)
SELECT
    {generation:UInt64}, {note:UInt64}, company, sign, if(sign = 1, newest, old), if(sign = 1, newest_standing, old_standing), week, month, quarter,
    if(sign = -1, old_7d, if(week = 0 OR newest < bitShiftLeft(toUInt128({start_7d_ms:Int64}), 64), 0, toInt16(bitAnd(toUInt64(newest), 16383)) - toInt16(bitAnd(toUInt64(week), 16383)))),
    if(sign = -1, old_30d, if(month = 0 OR newest < bitShiftLeft(toUInt128({start_30d_ms:Int64}), 64), 0, toInt16(bitAnd(toUInt64(newest), 16383)) - toInt16(bitAnd(toUInt64(month), 16383)))),
    if(sign = -1, old_90d, if(quarter = 0 OR newest < bitShiftLeft(toUInt128({start_90d_ms:Int64}), 64), 0, toInt16(bitAnd(toUInt64(newest), 16383)) - toInt16(bitAnd(toUInt64(quarter), 16383))))
FROM
(
    SELECT
        company, max(latest) AS newest, argMax(standing, latest) AS newest_standing, max(before_7d) AS week, max(before_30d) AS month, max(before_90d) AS quarter,
        maxIf(latest, noted = 1) AS old, argMaxIf(standing, latest, noted = 1) AS old_standing,
        argMaxIf(delta_7d, position, noted = 1) AS old_7d, argMaxIf(delta_30d, position, noted = 1) AS old_30d, argMaxIf(delta_90d, position, noted = 1) AS old_90d
    FROM
    (
        SELECT company, position, sign AS noted, latest, standing, before_7d, before_30d, before_90d, delta_7d, delta_30d, delta_90d
        FROM universe_company
        WHERE generation = {generation:UInt64} AND company >= {first:UInt64} AND company <= {last:UInt64} AND (sign = 1 AND position <= {was_note:UInt64} OR sign = 0 AND position = {note:UInt64}) AND company IN
        (
            SELECT company FROM universe_company
            WHERE generation = {generation:UInt64} AND company >= {first:UInt64} AND company <= {last:UInt64} AND position = {note:UInt64} AND sign = 0
        )
    )
    GROUP BY company
)
ARRAY JOIN if(old > 0, [1, -1], [1]) AS sign
SETTINGS max_insert_threads = 4, min_insert_block_size_rows = 262144, max_insert_block_size = 262144
