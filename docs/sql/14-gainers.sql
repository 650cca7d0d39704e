-- Who gained most within 30 days?
-- The twenty largest gains, as GET /v1/movers lists them.
-- Columns: domain, composite_then, composite_now, delta, rating_then, rating_now
SELECT domain, composite_then, composite_now, delta, rating_then, rating_now
FROM v1_mover
WHERE window_days = 30 AND delta > 0
ORDER BY delta DESC, domain
LIMIT 20
