-- name: universe_steps
-- How many companies more, or fewer, have each composite in each cohort than before the notes of a batch; after a count of
-- everything, how many have it. By cohort and composite, in hundredths. params: generation UInt64, note UInt64.
SELECT cohort, composite, sum(sign) AS companies
FROM universe_company
WHERE generation = {generation:UInt64} AND position = {note:UInt64} AND sign IN (-1, 1)
GROUP BY cohort, composite
HAVING companies != 0
ORDER BY cohort, composite
