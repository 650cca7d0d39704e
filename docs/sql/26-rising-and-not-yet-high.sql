-- Who has momentum and is not yet rated high?
-- Companies below SVC-2+ whose momentum index is high.
-- Columns: domain, composite, rating, momentum_index
SELECT domain, composite, rating, momentum_index
FROM v1_score_latest
WHERE momentum_index >= 60 AND rating < 'SVC-2+'
ORDER BY momentum_index DESC, domain
LIMIT 50
