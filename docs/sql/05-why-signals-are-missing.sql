-- Why are signals of a company missing?
-- Number of missing signals by reason.
-- Columns: reason, signals
SELECT reason, count() AS signals
FROM v1_signal
WHERE domain = 'example.com' AND state = 'missing' AND scored_at = (SELECT max(scored_at) FROM v1_score_history WHERE domain = 'example.com')
GROUP BY reason
ORDER BY signals DESC, reason
