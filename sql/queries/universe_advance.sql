-- name: universe_advance
-- Notes the new standing of each company that has records since the last batch, or one that the start or end of a window has
-- passed, and takes back the one that was counted before. Old standings come from the notes, so that history is not read.
-- params: generation UInt64, note UInt64 and was_note UInt64 (this batch and the one before), version String, since UInt64 and position UInt64 (counted were those up to since; now up to position),
-- end_ms Int64, start_7d_ms Int64, start_30d_ms Int64, start_90d_ms Int64, and was_end_ms, was_start_7d_ms, was_start_30d_ms,
-- was_start_90d_ms Int64, which are those of the batch before.
INSERT INTO universe_company
(
    generation, position, company, sign, latest, cohort, composite, premium_bin, team_structure, market_position, momentum_tailwinds,
    financial_health, before_7d, before_30d, before_90d, delta_7d, delta_30d, delta_90d
)
WITH
    bitShiftLeft(toUInt128(toUnixTimestamp64Milli(scored_at)), 64) + bitShiftLeft(toUInt128(toUnixTimestamp64Milli(written_at)), 14) + composite AS stamp,
    bitShiftLeft(toUInt128(cohort), 64) + bitShiftLeft(toUInt64(least(intDiv(scale_premium, 100), 11)), 56)
        + bitShiftLeft(toUInt64(team_structure), 42) + bitShiftLeft(toUInt64(market_position), 28)
        + bitShiftLeft(toUInt64(momentum_tailwinds), 14) + financial_health AS standing,
    if(sign = 1, newest, old) AS latest_stamp,
    if(sign = 1, newest_standing, old_standing) AS latest_standing,
    toUInt64(latest_standing) AS scores
SELECT
    {generation:UInt64}, {note:UInt64}, company, sign, latest_stamp, toUInt64(bitShiftRight(latest_standing, 64)), toUInt16(bitAnd(toUInt64(latest_stamp), 16383)),
    toUInt8(bitShiftRight(scores, 56)), toUInt16(bitAnd(bitShiftRight(scores, 42), 16383)), toUInt16(bitAnd(bitShiftRight(scores, 28), 16383)),
    toUInt16(bitAnd(bitShiftRight(scores, 14), 16383)), toUInt16(bitAnd(scores, 16383)),
    week, month, quarter,
    if(sign = -1, old_7d, if(week = 0 OR newest < bitShiftLeft(toUInt128({start_7d_ms:Int64}), 64), 0, toInt16(bitAnd(toUInt64(newest), 16383)) - toInt16(bitAnd(toUInt64(week), 16383)))),
    if(sign = -1, old_30d, if(month = 0 OR newest < bitShiftLeft(toUInt128({start_30d_ms:Int64}), 64), 0, toInt16(bitAnd(toUInt64(newest), 16383)) - toInt16(bitAnd(toUInt64(month), 16383)))),
    if(sign = -1, old_90d, if(quarter = 0 OR newest < bitShiftLeft(toUInt128({start_90d_ms:Int64}), 64), 0, toInt16(bitAnd(toUInt64(newest), 16383)) - toInt16(bitAnd(toUInt64(quarter), 16383))))
FROM
(
    SELECT
        company, max(s) AS newest, argMax(p, s) AS newest_standing, max(b7) AS week, max(b30) AS month, max(b90) AS quarter,
        maxIf(s, noted > 0) AS old, argMaxIf(p, s, noted > 0) AS old_standing,
        argMax(d7, noted) AS old_7d, argMax(d30, noted) AS old_30d, argMax(d90, noted) AS old_90d
    FROM
    (
        SELECT
            company, position + 1 AS noted, latest AS s,
            bitShiftLeft(toUInt128(cohort), 64) + bitShiftLeft(toUInt64(premium_bin), 56) + bitShiftLeft(toUInt64(team_structure), 42)
                + bitShiftLeft(toUInt64(market_position), 28) + bitShiftLeft(toUInt64(momentum_tailwinds), 14) + financial_health AS p,
            before_7d AS b7, before_30d AS b30, before_90d AS b90, delta_7d AS d7, delta_30d AS d30, delta_90d AS d90
        FROM universe_company
        WHERE generation = {generation:UInt64} AND position <= {was_note:UInt64} AND sign = 1 AND company IN
        (
            SELECT company FROM universe_record
            WHERE pipeline_version = {version:String} AND _block_number > {since:UInt64} AND _block_number <= {position:UInt64} AND scored_at <= fromUnixTimestamp64Milli({end_ms:Int64}, 'UTC')
            UNION ALL
            SELECT company FROM universe_record
            WHERE pipeline_version = {version:String} AND _block_number <= {since:UInt64} AND (
                scored_at >= fromUnixTimestamp64Milli({was_start_7d_ms:Int64}, 'UTC') AND scored_at < fromUnixTimestamp64Milli({start_7d_ms:Int64}, 'UTC')
                OR scored_at >= fromUnixTimestamp64Milli({was_start_30d_ms:Int64}, 'UTC') AND scored_at < fromUnixTimestamp64Milli({start_30d_ms:Int64}, 'UTC')
                OR scored_at >= fromUnixTimestamp64Milli({was_start_90d_ms:Int64}, 'UTC') AND scored_at < fromUnixTimestamp64Milli({start_90d_ms:Int64}, 'UTC')
                OR scored_at > fromUnixTimestamp64Milli({was_end_ms:Int64}, 'UTC') AND scored_at <= fromUnixTimestamp64Milli({end_ms:Int64}, 'UTC'))
        )
        UNION ALL
        SELECT
            company, 0, stamp, standing,
            if(scored_at < fromUnixTimestamp64Milli({start_7d_ms:Int64}, 'UTC'), stamp, 0), if(scored_at < fromUnixTimestamp64Milli({start_30d_ms:Int64}, 'UTC'), stamp, 0),
            if(scored_at < fromUnixTimestamp64Milli({start_90d_ms:Int64}, 'UTC'), stamp, 0), 0, 0, 0
        FROM
        (
            SELECT company, scored_at, written_at, cohort, composite, scale_premium, team_structure, market_position, momentum_tailwinds, financial_health FROM universe_record
            WHERE pipeline_version = {version:String} AND _block_number > {since:UInt64} AND _block_number <= {position:UInt64} AND scored_at <= fromUnixTimestamp64Milli({end_ms:Int64}, 'UTC')
            UNION ALL
            SELECT company, scored_at, written_at, cohort, composite, scale_premium, team_structure, market_position, momentum_tailwinds, financial_health FROM universe_record
            WHERE pipeline_version = {version:String} AND _block_number <= {since:UInt64} AND (
                scored_at >= fromUnixTimestamp64Milli({was_start_7d_ms:Int64}, 'UTC') AND scored_at < fromUnixTimestamp64Milli({start_7d_ms:Int64}, 'UTC')
                OR scored_at >= fromUnixTimestamp64Milli({was_start_30d_ms:Int64}, 'UTC') AND scored_at < fromUnixTimestamp64Milli({start_30d_ms:Int64}, 'UTC')
                OR scored_at >= fromUnixTimestamp64Milli({was_start_90d_ms:Int64}, 'UTC') AND scored_at < fromUnixTimestamp64Milli({start_90d_ms:Int64}, 'UTC')
                OR scored_at > fromUnixTimestamp64Milli({was_end_ms:Int64}, 'UTC') AND scored_at <= fromUnixTimestamp64Milli({end_ms:Int64}, 'UTC'))
        )
    )
    GROUP BY company
)
ARRAY JOIN if(old > 0, [1, -1], [1]) AS sign
