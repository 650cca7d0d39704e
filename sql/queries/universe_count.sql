-- name: universe_count
-- Counts the newest record of each company under a pipeline version: one row per cohort, and a last one with an empty sector.
-- A cohort has a bin for each of its companies, in no order, as two bytes of a string, lowest first: 256, as a last byte of zero would be
-- cut off, plus 12 times its composite in tenths, plus the points of its scale premium, 11 at most. It has its bucket scores summed in
-- hundredths (team_structure, market_position, momentum_tailwinds, financial_health) and the companies of its leaderboard, best first.
-- Only cohorts of peers have a leaderboard.
-- The caller counts the bins: FINAL is half of the cost, so the table is read once, and a second grouping costs more than two bytes a
-- company. They are a string as drivers read arrays element by element.
-- The last row has the ids of the records written since an instant, recent_max at most.
-- All parts of the query read the same rows: the setting says so where it is not the default.
-- params: version String, since_ms Int64, leaders UInt16 (size of a leaderboard), recent_max UInt32.
SELECT
    sector, geo_scope, toString(profile) AS profile, arrayStringConcat(bins) AS bins, sums,
    arrayMap(leader -> toUInt16(-leader.1), leaders) AS leader_steps, leaders.2 AS leader_domains, leaders.3 AS leader_names, emptyArrayUInt64() AS recent
FROM
(
    SELECT
        sector, geo_scope, profile, groupArray(reinterpretAsFixedString(toUInt16(256 + toUInt16(round(composite * 10)) * 12 + toUInt8(least(scale_premium, 11))))) AS bins,
        [sum(toUInt32(round(team_structure * 100))), sum(toUInt32(round(market_position * 100))),
            sum(toUInt32(round(momentum_tailwinds * 100))), sum(toUInt32(round(financial_health * 100)))] AS sums,
        groupArraySortedIf({leaders:UInt16})((-toInt16(round(composite * 100)), domain, company_name),
            sector != 'unknown' AND geo_scope != 'unknown' AND profile != 'unclassified') AS leaders
    FROM score_latest FINAL
    WHERE pipeline_version = {version:String}
    GROUP BY sector, geo_scope, profile
)
UNION ALL
SELECT '', '', '', '', [], [], [], [], groupArray(id)
FROM
(
    SELECT cityHash64(domain, scored_at) AS id
    FROM score_latest
    PREWHERE written_at >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC')
    WHERE pipeline_version = {version:String}
    LIMIT {recent_max:UInt32}
)
SETTINGS enable_shared_storage_snapshot_in_query = 1
