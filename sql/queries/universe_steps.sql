-- name: universe_steps
-- How many companies more, or fewer, have each composite in each cohort than before the notes of a batch; after a count of
-- everything, how many have it. By cohort and composite, in hundredths. params: generation UInt64, note UInt64.
SELECT cohort, composite, sum(n) AS companies
FROM
(
    SELECT cohort, composite, 1 AS n FROM universe_company
    WHERE generation = {generation:UInt64} AND position = {note:UInt64}
    UNION ALL
    SELECT was_cohort, was_composite, -1 FROM universe_company
    WHERE generation = {generation:UInt64} AND position = {note:UInt64} AND was_standing != 0
)
GROUP BY cohort, composite
HAVING companies != 0
ORDER BY cohort, composite
