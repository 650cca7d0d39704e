-- name: rescore_amount
-- How many records of a pipeline version (of all others than the new one when it is empty) have signals and no record of the
-- new version of the same company and time, and how many have none of both. One row. params: from String, to String.
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
