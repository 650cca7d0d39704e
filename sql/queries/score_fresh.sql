-- name: score_fresh
-- Companies with a record of a pipeline version scored at or after an instant, and the time of the newest such record.
-- params: domains Array(String), version String, since_ms Int64. columns: domain, scored_at; at most one row per domain.
SELECT domain, max(scored_at) AS scored_at
FROM score_latest
PREWHERE domain IN {domains:Array(String)} AND pipeline_version = {version:String}
GROUP BY domain
HAVING scored_at >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC')
SETTINGS max_threads = 1
