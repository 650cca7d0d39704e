-- name: universe_leaders
-- Companies that may be shown among the first of their cohort or of the movers, after a count of everything: those that reach a
-- floor, each with the names of its newest record. Some hundred for each floor.
-- floors: cohorts Array(UInt64) with floors Array(UInt16), a composite each, 0 for other cohorts; up_7d, down_7d, up_30d, down_30d, up_90d,
-- down_90d Int16, of which a change is at least or at most one.
-- params: generation UInt64, note UInt64, version String, position UInt64, floors.
SELECT
    s.company AS company, s.cohort AS cohort, s.composite AS composite, s.delta_7d AS delta_7d, s.delta_30d AS delta_30d, s.delta_90d AS delta_90d,
    n.domain AS domain, n.company_name AS name, n.sector AS sector, n.geo_scope AS geo_scope, toString(n.profile) AS profile
FROM
(
    SELECT company, domain, company_name, sector, geo_scope, profile, toUnixTimestamp64Milli(scored_at) AS scored_ms, toUnixTimestamp64Milli(written_at) AS written_ms, composite
    FROM universe_record
    WHERE pipeline_version = {version:String} AND _block_number <= {position:UInt64} AND company IN
    (
        SELECT company FROM universe_company
        WHERE generation = {generation:UInt64} AND position = {note:UInt64} AND sign = 1
            AND (composite >= transform(cohort, {cohorts:Array(UInt64)}, {floors:Array(UInt16)}, toUInt16(0))
            OR delta_7d >= {up_7d:Int16} OR delta_7d <= {down_7d:Int16} OR delta_30d >= {up_30d:Int16} OR delta_30d <= {down_30d:Int16}
            OR delta_90d >= {up_90d:Int16} OR delta_90d <= {down_90d:Int16})
    )
) AS n
INNER ANY JOIN
(
    SELECT
        company, cohort, composite, delta_7d, delta_30d, delta_90d, toInt64(toUInt64(bitShiftRight(latest, 64))) AS scored_ms,
        toInt64(bitShiftRight(toUInt64(latest), 14)) AS written_ms
    FROM universe_company
    WHERE generation = {generation:UInt64} AND position = {note:UInt64} AND sign = 1
        AND (composite >= transform(cohort, {cohorts:Array(UInt64)}, {floors:Array(UInt16)}, toUInt16(0))
            OR delta_7d >= {up_7d:Int16} OR delta_7d <= {down_7d:Int16} OR delta_30d >= {up_30d:Int16} OR delta_30d <= {down_30d:Int16}
            OR delta_90d >= {up_90d:Int16} OR delta_90d <= {down_90d:Int16})
) AS s ON n.company = s.company AND n.scored_ms = s.scored_ms AND n.written_ms = s.written_ms AND n.composite = s.composite
