-- name: score_reference
-- The record the momentum index compares with: of one company and pipeline version, at least
-- min_days and at most max_days old, nearest to best_days, the older one of two equally near. 0 or 1 row.
-- params: domain String, version String, now_ms Int64, min_days UInt16, best_days UInt16, max_days UInt16.
WITH fromUnixTimestamp64Milli({now_ms:Int64}, 'UTC') AS now_at
SELECT scored_at, base
FROM score_history
WHERE domain = {domain:String} AND pipeline_version = {version:String}
    AND scored_at >= now_at - toIntervalDay({max_days:UInt16}) AND scored_at <= now_at - toIntervalDay({min_days:UInt16})
ORDER BY abs(dateDiff('millisecond', scored_at, now_at - toIntervalDay({best_days:UInt16}))), scored_at, written_at DESC
LIMIT 1
