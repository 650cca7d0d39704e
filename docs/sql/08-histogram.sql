-- How many companies have which score?
-- The histogram of composites, with the share of companies up to the end of each bin.
-- 21,501 examples: 6 rows.
-- Columns: label, companies, share_up_to
SELECT label, companies, round(sum(share) OVER (ORDER BY lower), 4) AS share_up_to
FROM v1_distribution
WHERE measure = 'composite' AND companies > 0
ORDER BY lower
