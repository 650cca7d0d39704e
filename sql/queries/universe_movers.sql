-- name: universe_movers
-- Companies that are among the first limit gainers or decliners within 7, 30 or 90 days that end at an instant: 6 * limit rows at most, in no
-- order. Scores are composites in hundredths: now is the newest one, thens the last one before each window, -1 when there is none. A company
-- without a record within the window has the same score before it, and no delta.
-- A stamp is scored_at, written_at and composite in one number: its maximum is the newest record with its score, and of copies of a record that
-- are not merged yet the one written last. The table is in the order of domain, so companies are grouped one after the other, and memory does
-- not grow with their number.
-- params: version String, end_ms Int64, start_7d_ms Int64, start_30d_ms Int64, start_90d_ms Int64, limit UInt8.
WITH
    bitShiftLeft(toUInt128(toUnixTimestamp64Milli(scored_at)), 64) + bitShiftLeft(toUInt64(toUnixTimestamp64Milli(written_at)), 14)
        + toUInt16(round(composite * 100)) AS stamp,
    toInt32(toUInt64(max(stamp)) % 16384) AS now,
    maxIf(stamp, stamp < bitShiftLeft(toUInt128({start_7d_ms:Int64}), 64)) AS last_7d,
    maxIf(stamp, stamp < bitShiftLeft(toUInt128({start_30d_ms:Int64}), 64)) AS last_30d,
    maxIf(stamp, stamp < bitShiftLeft(toUInt128({start_90d_ms:Int64}), 64)) AS last_90d,
    arrayMap(last -> if(last = 0, -1, toInt32(toUInt64(last) % 16384)), [last_7d, last_30d, last_90d]) AS thens
SELECT domain, argMax(company_name, stamp) AS name, now, thens
FROM score_history
WHERE pipeline_version = {version:String} AND scored_at <= fromUnixTimestamp64Milli({end_ms:Int64}, 'UTC')
    AND domain GLOBAL IN
    (
        SELECT domain
        FROM
        (
            SELECT window, delta, arrayJoin(groupArraySorted({limit:UInt8})(domain)) AS domain
            FROM
            (
                SELECT domain, now, thens
                FROM score_history
                WHERE pipeline_version = {version:String} AND scored_at <= fromUnixTimestamp64Milli({end_ms:Int64}, 'UTC')
                GROUP BY domain
            )
            ARRAY JOIN [7, 30, 90] AS window, arrayMap(then -> if(then = -1, 0, now - then), thens) AS delta
            WHERE delta != 0
            GROUP BY window, delta
        )
        ORDER BY abs(delta) DESC, domain
        LIMIT {limit:UInt8} BY window, delta > 0
    )
GROUP BY domain
SETTINGS optimize_aggregation_in_order = 1
