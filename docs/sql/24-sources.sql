-- Which source answers most?
-- Signals of newest records by the source whose value was used.
-- Columns: source, signals, companies
SELECT source, count() AS signals, uniqExact(domain) AS companies
FROM v1_signal
WHERE state != 'missing' AND (domain, scored_at) IN (SELECT domain, scored_at FROM v1_score_latest)
GROUP BY source
ORDER BY signals DESC, source
