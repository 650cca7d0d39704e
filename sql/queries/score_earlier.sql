-- name: score_earlier
-- Times of the earlier records that a new record of each domain uses. previous_at is that of the newest record with signals before the
-- company's time in nows_ms, at most previous_days older, of any pipeline version. The reference of the momentum index is of one
-- pipeline version, at least min_days and at most max_days older than that time, and nearest to best_days; of two equally near ones the
-- older one. Both times are 1970-01-01 without such a record. A company without records has no row.
-- params: domains Array(String) without repetition, nows_ms Array(Int64) in their order, version String, previous_days UInt16,
-- min_days UInt16, best_days UInt16, max_days UInt16. columns: domain, previous_at, reference_at, reference_base.
WITH
    fromUnixTimestamp64Milli({nows_ms:Array(Int64)}[indexOf({domains:Array(String)}, domain)], 'UTC') AS now_at,
    pipeline_version = {version:String} AND scored_at >= now_at - toIntervalDay({max_days:UInt16})
        AND scored_at <= now_at - toIntervalDay({min_days:UInt16}) AS in_window,
    (abs(dateDiff('millisecond', scored_at, now_at - toIntervalDay({best_days:UInt16}))), scored_at, -toUnixTimestamp64Milli(written_at)) AS distance
SELECT
    domain,
    maxIf(scored_at, length(`signal.id`) > 0 AND scored_at >= now_at - toIntervalDay({previous_days:UInt16})) AS previous_at,
    argMinIf(scored_at, distance, in_window) AS reference_at,
    argMinIf(base, distance, in_window) AS reference_base
FROM score_history
PREWHERE domain IN {domains:Array(String)}
WHERE scored_at < now_at
GROUP BY domain
SETTINGS max_threads = 1
