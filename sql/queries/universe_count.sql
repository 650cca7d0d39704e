-- name: universe_count
-- Notes the standing of every company whose hash lies within a range, as of the records of one pipeline version inserted up
-- to a position and scored up to an instant. Everything in one pass: the newest record and those before each window.
-- params: generation UInt64, note UInt64, position UInt64, version String, first UInt64, last UInt64 (of the range, both in it), end_ms Int64,
-- start_7d_ms Int64, start_30d_ms Int64, start_90d_ms Int64.
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
    toUInt64(newest_standing) AS scores
SELECT
    {generation:UInt64}, {note:UInt64}, company, 1, newest, toUInt64(bitShiftRight(newest_standing, 64)), toUInt16(bitAnd(toUInt64(newest), 16383)),
    toUInt8(bitShiftRight(scores, 56)), toUInt16(bitAnd(bitShiftRight(scores, 42), 16383)), toUInt16(bitAnd(bitShiftRight(scores, 28), 16383)),
    toUInt16(bitAnd(bitShiftRight(scores, 14), 16383)), toUInt16(bitAnd(scores, 16383)),
    week, month, quarter,
    if(week = 0 OR newest < bitShiftLeft(toUInt128({start_7d_ms:Int64}), 64), 0, toInt16(bitAnd(toUInt64(newest), 16383)) - toInt16(bitAnd(toUInt64(week), 16383))),
    if(month = 0 OR newest < bitShiftLeft(toUInt128({start_30d_ms:Int64}), 64), 0, toInt16(bitAnd(toUInt64(newest), 16383)) - toInt16(bitAnd(toUInt64(month), 16383))),
    if(quarter = 0 OR newest < bitShiftLeft(toUInt128({start_90d_ms:Int64}), 64), 0, toInt16(bitAnd(toUInt64(newest), 16383)) - toInt16(bitAnd(toUInt64(quarter), 16383)))
FROM
(
    SELECT
        company, max(stamp) AS newest, argMax(standing, stamp) AS newest_standing,
        maxIf(stamp, scored_at < fromUnixTimestamp64Milli({start_7d_ms:Int64}, 'UTC')) AS week,
        maxIf(stamp, scored_at < fromUnixTimestamp64Milli({start_30d_ms:Int64}, 'UTC')) AS month,
        maxIf(stamp, scored_at < fromUnixTimestamp64Milli({start_90d_ms:Int64}, 'UTC')) AS quarter
    FROM universe_record
    WHERE pipeline_version = {version:String} AND company >= {first:UInt64} AND company <= {last:UInt64}
        AND _block_number <= {position:UInt64} AND scored_at <= fromUnixTimestamp64Milli({end_ms:Int64}, 'UTC')
    GROUP BY company
)
SETTINGS max_insert_threads = 2
