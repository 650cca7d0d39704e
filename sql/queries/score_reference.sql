-- name: score_reference
-- Reference record of the momentum index per domain, of one pipeline version: at least min_days and at most max_days older than the
-- company's time in nows_ms, nearest to best_days; of two equally near the older one. A company without such a record has no row.
-- params: domains Array(String) without repetition, nows_ms Array(Int64) in their order, version String, min_days UInt16,
-- best_days UInt16, max_days UInt16.
WITH fromUnixTimestamp64Milli({nows_ms:Array(Int64)}[indexOf({domains:Array(String)}, domain)], 'UTC') AS now_at
SELECT domain, scored_at, base
FROM score_history
PREWHERE domain IN {domains:Array(String)} AND pipeline_version = {version:String}
WHERE scored_at >= now_at - toIntervalDay({max_days:UInt16}) AND scored_at <= now_at - toIntervalDay({min_days:UInt16})
ORDER BY domain, abs(dateDiff('millisecond', scored_at, now_at - toIntervalDay({best_days:UInt16}))), scored_at, written_at DESC
LIMIT 1 BY domain
SETTINGS max_threads = 1
