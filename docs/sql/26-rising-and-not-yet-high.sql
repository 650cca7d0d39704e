-- Who has momentum and is not yet rated high?
-- Companies below SVC-2+ whose momentum index is above the median, and how much of their data is known.
-- 21,501 examples: 50 rows.
-- Columns: domain, composite, rating, momentum_index, completeness_pct
SELECT domain, composite, rating, momentum_index, completeness_pct
FROM v1_score_latest
WHERE momentum_index > 50 AND rating < 'SVC-2+'
ORDER BY momentum_index DESC, domain
LIMIT 50
