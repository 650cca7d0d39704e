-- Who has momentum and is not yet rated high?
-- Companies below SVC-2+ whose momentum index is high, with medium or high confidence.
-- Columns: domain, composite, rating, momentum_index
SELECT domain, composite, rating, momentum_index
FROM v1_score_latest
WHERE momentum_index >= 60 AND rating < 'SVC-2+' AND confidence >= 'medium'
ORDER BY momentum_index DESC, domain
LIMIT 50
