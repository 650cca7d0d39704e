-- name: universe_come
-- Companies whose standing changed and that may now be shown among the first: those that reach a floor. Names are those of the
-- record that came, empty where only time has passed.
-- floors: cohorts Array(UInt64) with floors Array(UInt16), a composite each, 0 for other cohorts; up_7d, down_7d, up_30d, down_30d, up_90d,
-- down_90d Int16, of which a change is at least or at most one.
-- params: generation UInt64, note UInt64, version String, since UInt64 and position UInt64 (counted were those up to since; now up to position), floors.
SELECT
    s.company AS company, toUInt64(bitShiftRight(s.latest, 64)) AS stamp_high, toUInt64(s.latest) AS stamp_low, s.cohort AS cohort, s.composite AS composite, s.delta_7d AS delta_7d, s.delta_30d AS delta_30d, s.delta_90d AS delta_90d,
    n.domain AS domain, n.company_name AS name, n.sector AS sector, n.geo_scope AS geo_scope, toString(n.profile) AS profile
FROM
(
    SELECT company, stamp, domain, company_name, sector, geo_scope, profile
    FROM universe_record
    PREWHERE _block_number > {since:UInt64}
    WHERE toUInt64(extract(_part, '^[^_]+_[0-9]+_([0-9]+)')) > {since:UInt64} AND _partition_value.1 = {version:String} AND _block_number <= {position:UInt64}
) AS n
RIGHT ANY JOIN
(
    SELECT company, latest, cohort, composite, delta_7d, delta_30d, delta_90d
    FROM universe_company
    WHERE generation = {generation:UInt64} AND position = {note:UInt64}
        AND (composite >= transform(cohort, {cohorts:Array(UInt64)}, {floors:Array(UInt16)}, toUInt16(0))
            OR delta_7d >= {up_7d:Int16} OR delta_7d <= {down_7d:Int16} OR delta_30d >= {up_30d:Int16} OR delta_30d <= {down_30d:Int16}
            OR delta_90d >= {up_90d:Int16} OR delta_90d <= {down_90d:Int16})
) AS s ON n.company = s.company AND n.stamp = s.latest
SETTINGS query_plan_join_swap_table = 'false'
