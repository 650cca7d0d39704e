-- name: rescore_amount
-- Numbers of records of version from for which no record of version to, of the same company and time, exists: pending with signals,
-- bare without. An empty from means any version. One row. params: from String, to String.
SELECT countIf(detailed) AS pending, countIf(NOT detailed) AS bare
FROM
(
    SELECT max(pipeline_version = {to:String}) AS done, max(notEmpty(`signal.id`)) AS detailed
    FROM score_history
    WHERE {from:String} = '' OR pipeline_version IN ({from:String}, {to:String})
    GROUP BY domain, scored_at
)
WHERE NOT done
SETTINGS optimize_aggregation_in_order = 1
