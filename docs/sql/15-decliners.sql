-- Who lost most within 90 days?
-- The twenty largest losses between two records with medium or high confidence.
-- 21,501 examples: no rows, since each company has one record.
-- With 300 companies of `companyscore bench seed --domains 300 --append`: 20 rows.
-- Columns: domain, composite_then, composite_now, delta, rating_then, rating_now
SELECT domain, composite_then, composite_now, delta, rating_then, rating_now
FROM v1_mover
WHERE window_days = 90 AND delta < 0 AND confidence_now >= 'medium' AND confidence_then >= 'medium'
ORDER BY delta, domain
LIMIT 20
