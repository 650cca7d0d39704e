-- name: rescore_until
-- Where the next page of records to rescore ends: the domain of the last of limit pending records after a domain; no row when
-- there are none. params: after String, from String, to String, limit UInt32.
SELECT domain
FROM
(
    SELECT domain
    FROM score_history
    WHERE domain > {after:String} AND ({from:String} = '' OR pipeline_version IN ({from:String}, {to:String}))
    GROUP BY domain, scored_at
    HAVING NOT max(pipeline_version = {to:String}) AND max(notEmpty(`signal.id`))
    ORDER BY domain, scored_at
    LIMIT {limit:UInt32}
)
ORDER BY domain DESC
LIMIT 1
SETTINGS optimize_aggregation_in_order = 1
