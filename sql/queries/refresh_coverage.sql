-- name: refresh_coverage
-- Numbers of companies with a record, of those younger than their target age, and of those due as defined in refresh_due. oldest_at is
-- the oldest time of a newest record, 1970-01-01 without companies.
-- params: those of refresh_due without limit. columns: companies, young, due, oldest_at; one row.
SELECT
    count() AS companies, countIf({now_ms:Int64} - scored <= target) AS young,
    countIf({now_ms:Int64} - greatest(scored, started) > target AND ({live:Bool} OR imported > scored OR current < scored)) AS due,
    fromUnixTimestamp64Milli(min(scored), 'UTC') AS oldest_at
FROM
(
    SELECT
        domain, max(scored_ms) AS scored, max(current_ms) AS current, max(imported_ms) AS imported, max(started_ms) AS started,
        if(max(asked) >= toDate(fromUnixTimestamp64Milli({asked_since_ms:Int64}, 'UTC')), {asked_ms:Int64}, {others_ms:Int64}) AS target
    FROM
    (
        SELECT domain, toUnixTimestamp64Milli(scored_at) AS scored_ms, if(pipeline_version = {version:String}, scored_ms, 0) AS current_ms, toInt64(0) AS imported_ms, toInt64(0) AS started_ms, toDate(0) AS asked
        FROM score_latest
        UNION ALL
        SELECT domain, 0, 0, toUnixTimestamp64Milli(imported_at), 0, toDate(0)
        FROM company_facts
        WHERE NOT {live:Bool}
        UNION ALL
        SELECT domain, 0, 0, 0, toUnixTimestamp64Milli(started_at), asked_on
        FROM company_demand
    )
    GROUP BY domain
    HAVING scored > 0
)
SETTINGS max_bytes_before_external_group_by = 536870912
