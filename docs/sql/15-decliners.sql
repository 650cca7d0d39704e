-- Who lost most within 90 days?
-- The twenty largest losses.
-- Columns: domain, composite_then, composite_now, delta, rating_then, rating_now
SELECT domain, composite_then, composite_now, delta, rating_then, rating_now
FROM v1_mover
WHERE window_days = 90 AND delta < 0
ORDER BY delta, domain
LIMIT 20
