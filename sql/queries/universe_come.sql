-- name: universe_come
-- Companies whose standing changed and that may now be shown among the first: those that reach a floor. name_is_newest is 0
-- when the name is that of an older record, which happens when only time has passed.
-- floors: cohorts Array(UInt64) with floors Array(UInt16), a composite each, 0 for other cohorts; up_7d, down_7d, up_30d, down_30d, up_90d,
-- down_90d Int16, of which a change is at least or at most one.
-- params: generation UInt64, note UInt64 and was_note UInt64 (this batch and the one before), version String, since UInt64 and position UInt64 (counted were those up to since; now up to position),
-- end_ms Int64, start_7d_ms Int64, start_30d_ms Int64, start_90d_ms Int64, and was_end_ms, was_start_7d_ms, was_start_30d_ms,
-- was_start_90d_ms Int64, which are those of the batch before.
SELECT
    s.company AS company, s.cohort AS cohort, s.composite AS composite, s.delta_7d AS delta_7d, s.delta_30d AS delta_30d, s.delta_90d AS delta_90d,
    n.domain AS domain, n.name AS name, n.stamp = s.latest AS name_is_newest
FROM
(
    SELECT company, latest, cohort, composite, delta_7d, delta_30d, delta_90d
    FROM universe_company
    WHERE generation = {generation:UInt64} AND position = {note:UInt64} AND sign = 1
        AND (composite >= transform(cohort, {cohorts:Array(UInt64)}, {floors:Array(UInt16)}, toUInt16(0))
            OR delta_7d >= {up_7d:Int16} OR delta_7d <= {down_7d:Int16} OR delta_30d >= {up_30d:Int16} OR delta_30d <= {down_30d:Int16}
            OR delta_90d >= {up_90d:Int16} OR delta_90d <= {down_90d:Int16})
) AS s
INNER JOIN
(
    SELECT company, argMax(domain, stamp_of) AS domain, argMax(company_name, stamp_of) AS name, max(stamp_of) AS stamp
    FROM
    (
        SELECT company, domain, company_name, bitShiftLeft(toUInt128(toUnixTimestamp64Milli(scored_at)), 64) + bitShiftLeft(toUInt128(toUnixTimestamp64Milli(written_at)), 14) + composite AS stamp_of FROM
        (
            SELECT company, domain, company_name, scored_at, written_at, composite FROM universe_record
            WHERE pipeline_version = {version:String} AND _block_number > {since:UInt64} AND _block_number <= {position:UInt64} AND scored_at <= fromUnixTimestamp64Milli({end_ms:Int64}, 'UTC')
            UNION ALL
            SELECT company, domain, company_name, scored_at, written_at, composite FROM universe_record
            WHERE pipeline_version = {version:String} AND _block_number <= {since:UInt64} AND (
                scored_at >= fromUnixTimestamp64Milli({was_start_7d_ms:Int64}, 'UTC') AND scored_at < fromUnixTimestamp64Milli({start_7d_ms:Int64}, 'UTC')
                OR scored_at >= fromUnixTimestamp64Milli({was_start_30d_ms:Int64}, 'UTC') AND scored_at < fromUnixTimestamp64Milli({start_30d_ms:Int64}, 'UTC')
                OR scored_at >= fromUnixTimestamp64Milli({was_start_90d_ms:Int64}, 'UTC') AND scored_at < fromUnixTimestamp64Milli({start_90d_ms:Int64}, 'UTC')
                OR scored_at > fromUnixTimestamp64Milli({was_end_ms:Int64}, 'UTC') AND scored_at <= fromUnixTimestamp64Milli({end_ms:Int64}, 'UTC'))
        )
        WHERE company IN
        (
            SELECT company FROM universe_company
            WHERE generation = {generation:UInt64} AND position = {note:UInt64} AND sign = 1
                AND (composite >= transform(cohort, {cohorts:Array(UInt64)}, {floors:Array(UInt16)}, toUInt16(0))
            OR delta_7d >= {up_7d:Int16} OR delta_7d <= {down_7d:Int16} OR delta_30d >= {up_30d:Int16} OR delta_30d <= {down_30d:Int16}
            OR delta_90d >= {up_90d:Int16} OR delta_90d <= {down_90d:Int16})
        )
    )
    GROUP BY company
) AS n ON n.company = s.company
