-- name: universe_count
-- Counts the newest record of each company under a pipeline version: one row per cohort, and one row with empty sector and profile.
-- bins has two bytes per company, little-endian, in any order: 256 + 12 * composite in tenths + points of the scale premium, at most 11.
-- Only records with a completeness of at least min_data percent are counted.
-- The 256 is there because FixedString drops a last byte of zero. sums has the sums of the bucket scores in hundredths (team_structure,
-- market_position, momentum_tailwinds, financial_health). leaderboard has one line per company, best first: four hexadecimal digits of
-- 20000 - composite in hundredths, domain, a tab, four hexadecimal digits of 4096 + completeness in tenths of a percent, and name. Neither domains nor names contain control characters. Only cohorts of peers have
-- a leaderboard. ClickHouse sorts such strings faster than tuples, and collects numbers faster than strings.
-- The caller counts the bins. The table is read once, because FINAL costs as much as all the rest right after inserts, and a second
-- grouping costs more than two bytes per company. bins and leaderboard are strings because drivers read arrays element by element.
-- The row with the empty sector has the ids of up to recent_max records written since an instant.
-- The setting makes all parts of the query read the same rows.
-- params: version String, since_ms Int64, leaders UInt16 (size of a leaderboard), recent_max UInt32, min_data Float64.
SELECT
    sector, geo_scope, toString(profile) AS profile, arrayStringConcat(arrayMap(bin -> reinterpretAsFixedString(bin), bins)) AS bins, sums,
    arrayStringConcat(leaders, '\n') AS leaderboard,
    emptyArrayUInt64() AS recent
FROM
(
    SELECT
        sector, geo_scope, profile, groupArray(toUInt16(256 + toUInt16(round(composite * 10)) * 12 + toUInt8(least(scale_premium, 11)))) AS bins,
        [sum(toUInt32(round(team_structure * 100))), sum(toUInt32(round(market_position * 100))),
            sum(toUInt32(round(momentum_tailwinds * 100))), sum(toUInt32(round(financial_health * 100)))] AS sums,
        groupArraySortedIf({leaders:UInt16})(concat(hex(toUInt16(20000 - round(composite * 100))), domain, '\t', hex(toUInt16(4096 + round(completeness_pct * 10))), company_name),
            sector != 'unknown' AND geo_scope != 'unknown' AND profile != 'unclassified') AS leaders
    FROM score_latest FINAL
    WHERE pipeline_version = {version:String} AND completeness_pct >= {min_data:Float64}
    GROUP BY sector, geo_scope, profile
)
UNION ALL
SELECT '', '', '', '', [], '', groupArray(id)
FROM
(
    SELECT cityHash64(domain, scored_at) AS id
    FROM score_latest
    PREWHERE written_at >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC')
    WHERE pipeline_version = {version:String}
    LIMIT {recent_max:UInt32}
)
SETTINGS enable_shared_storage_snapshot_in_query = 1
