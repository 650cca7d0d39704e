-- name: universe_movers
-- The first limit gainers and decliners within the 7, 30 and 90 days that end at an instant: up to 6 * limit rows in any order. now is the
-- newest composite in hundredths; thens has the last one before each window, -1 if there is none. A company without a record within a
-- window has a delta of 0.
-- stamp combines scored_at, written_at, whether the record has a completeness of at least min_data percent, and composite in one number. Its maximum is the newest record; of copies that are not merged yet,
-- the one written last. The table is sorted by domain, so the aggregation runs in that order and its memory does not grow with the number
-- of companies.
-- A record with less data is no end of a delta; data_pct is the completeness of the newest record.
-- params: version String, min_data Float64, end_ms Int64, start_7d_ms Int64, start_30d_ms Int64, start_90d_ms Int64, limit UInt8.
WITH
    bitShiftLeft(toUInt128(toUnixTimestamp64Milli(scored_at)), 64) + bitShiftLeft(toUInt64(toUnixTimestamp64Milli(written_at)), 15)
        + if(completeness_pct >= {min_data:Float64}, 16384, 0) + toUInt16(round(composite * 100)) AS stamp,
    toInt32(toUInt64(max(stamp)) % 16384) AS now,
    maxIf(stamp, stamp < bitShiftLeft(toUInt128({start_7d_ms:Int64}), 64)) AS last_7d,
    maxIf(stamp, stamp < bitShiftLeft(toUInt128({start_30d_ms:Int64}), 64)) AS last_30d,
    maxIf(stamp, stamp < bitShiftLeft(toUInt128({start_90d_ms:Int64}), 64)) AS last_90d,
    arrayMap(
        last -> if(bitTest(toUInt64(last), 14) AND bitTest(toUInt64(max(stamp)), 14), toInt32(toUInt64(last) % 16384), -1),
        [last_7d, last_30d, last_90d]) AS thens
SELECT domain, argMax(company_name, stamp) AS name, argMax(completeness_pct, stamp) AS data_pct, now, thens
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
