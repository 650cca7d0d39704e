-- Which source answers most?
-- Signals in newest records, by the source that was believed.
-- Columns: source, signals, companies
SELECT source, count() AS signals, uniqExact(domain) AS companies
FROM v1_signal
WHERE state != 'missing' AND (domain, scored_at) IN (SELECT domain, scored_at FROM v1_score_latest)
GROUP BY source
ORDER BY signals DESC, source
