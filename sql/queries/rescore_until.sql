-- name: rescore_until
-- Last domain of the next page of records to rescore: that of the limit-th pending record after a domain, or of the last one. No row
-- without pending records. params: after String, from String, to String, limit UInt32.
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
