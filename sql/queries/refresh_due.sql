-- name: refresh_due
-- Companies that are due for a refresh, by falling ratio of age to target age. The age is that of the newest record, of any pipeline
-- version, or of the last run that the refresh job started, whichever is younger. A company is due if its age exceeds its target age
-- and a run can change the score: live is set, or the facts are newer than the record, or the record has another pipeline version.
-- A run that wrote no record is therefore repeated after the target age.
-- params: now_ms Int64, asked_since_ms Int64 (a company asked for on that day or later is one asked for), asked_ms Int64 and
-- others_ms Int64 (target ages), live Bool, version String, limit UInt32. columns: domain.
SELECT domain
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
WHERE {now_ms:Int64} - greatest(scored, started) > target AND ({live:Bool} OR imported > scored OR current < scored)
ORDER BY ({now_ms:Int64} - greatest(scored, started)) / target DESC, domain
LIMIT {limit:UInt32}
SETTINGS max_bytes_before_external_group_by = 536870912
