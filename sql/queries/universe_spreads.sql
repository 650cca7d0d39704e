-- name: universe_spreads
-- Moments of signal scores and premiums per cohort, from a sample of the newest records under a pipeline version. The sample is every
-- blocks-th block of 512 rows of the table: PREWHERE skips the other blocks, so the signals of a bounded number of companies are read.
-- It skips them before FINAL does its work, so until parts merge, a sample of less than all blocks can have an older record of a company.
-- ids are the signals; counts, sums and squares run parallel to it.
-- params: version String, blocks UInt32.
WITH arrayMap(state -> toFloat64(state IN ('ok', 'absent')), `signal.state`) AS known
SELECT
    sector, geo_scope, toString(profile) AS profile, `signal.id` AS ids,
    sumForEach(known) AS counts, sumForEach(arrayMap((score, one) -> score * one, `signal.score`, known)) AS sums,
    sumForEach(arrayMap((score, one) -> score * score * one, `signal.score`, known)) AS squares,
    toFloat64(count()) AS premium_count, sum(scale_premium) AS premium_sum, sum(scale_premium * scale_premium) AS premium_squares
FROM score_latest FINAL
PREWHERE intDiv(_part_offset, 512) % {blocks:UInt32} = 0
WHERE pipeline_version = {version:String} AND notEmpty(`signal.id`)
GROUP BY sector, geo_scope, profile, ids
