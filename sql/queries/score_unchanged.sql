-- name: score_unchanged
-- Companies whose newest record is of a pipeline version and not older than their facts, if they have facts. A run with facts alone
-- would give the same score. Companies without a record have no row.
-- params: domains Array(String), version String. columns: domain.
SELECT domain
FROM
(
    SELECT domain, toUnixTimestamp64Milli(scored_at) AS scored_ms, if(pipeline_version = {version:String}, scored_ms, 0) AS current_ms, toInt64(0) AS imported_ms
    FROM score_latest
    PREWHERE domain IN {domains:Array(String)}
    UNION ALL
    SELECT domain, 0, 0, toUnixTimestamp64Milli(imported_at)
    FROM company_facts
    PREWHERE domain IN {domains:Array(String)}
)
GROUP BY domain
HAVING max(scored_ms) > 0 AND max(current_ms) = max(scored_ms) AND max(imported_ms) <= max(scored_ms)
SETTINGS max_threads = 1
