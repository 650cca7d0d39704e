-- name: universe_count
-- Counts the newest record of each company under a pipeline version: one row per cohort, and a last one with an empty sector.
-- A cohort has the number of its companies at each composite, in hundredths (steps), and scale premium, in 12 bins of a point, in no
-- order; its bucket scores summed in hundredths (team_structure, market_position, momentum_tailwinds, financial_health); and the companies
-- of its leaderboard in no order. Only cohorts of peers have a leaderboard.
-- The last row has the ids of the records written since an instant, recent_max at most.
-- All parts of the query read the same rows: the setting says so where it is not the default.
-- params: version String, since_ms Int64, leaders UInt16 (size of a leaderboard), recent_max UInt32.
SELECT
    sector, geo_scope, toString(profile) AS profile, c.steps AS steps, c.premiums AS premiums, c.companies AS companies, c.sums AS sums,
    l.steps AS leader_steps, l.domains AS leader_domains, l.names AS leader_names, emptyArrayUInt64() AS recent
FROM
(
    SELECT
        sector, geo_scope, profile, groupArray(step) AS steps, groupArray(premium) AS premiums, groupArray(n) AS companies,
        [sum(team), sum(market), sum(momentum), sum(financial)] AS sums
    FROM
    (
        SELECT
            sector, geo_scope, profile, toUInt16(round(composite * 100)) AS step, toUInt8(least(scale_premium, 11)) AS premium, count() AS n,
            sum(toUInt32(round(team_structure * 100))) AS team, sum(toUInt32(round(market_position * 100))) AS market,
            sum(toUInt32(round(momentum_tailwinds * 100))) AS momentum, sum(toUInt32(round(financial_health * 100))) AS financial
        FROM score_latest FINAL
        WHERE pipeline_version = {version:String}
        GROUP BY sector, geo_scope, profile, step, premium
    )
    GROUP BY sector, geo_scope, profile
) AS c
LEFT JOIN
(
    SELECT sector, geo_scope, profile, groupArray(toUInt16(round(composite * 100))) AS steps, groupArray(domain) AS domains, groupArray(company_name) AS names
    FROM
    (
        SELECT sector, geo_scope, profile, composite, domain, company_name
        FROM score_latest FINAL
        WHERE pipeline_version = {version:String} AND sector != 'unknown' AND geo_scope != 'unknown' AND profile != 'unclassified'
        ORDER BY composite DESC, domain
        LIMIT {leaders:UInt16} BY sector, geo_scope, profile
    )
    GROUP BY sector, geo_scope, profile
) AS l USING (sector, geo_scope, profile)
UNION ALL
SELECT '', '', '', [], [], [], [], [], [], [], groupArray(id)
FROM
(
    SELECT cityHash64(domain, scored_at) AS id
    FROM score_latest
    PREWHERE written_at >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC')
    WHERE pipeline_version = {version:String}
    LIMIT {recent_max:UInt32}
)
SETTINGS enable_shared_storage_snapshot_in_query = 1
