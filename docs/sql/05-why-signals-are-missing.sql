-- Why are signals of a company missing?
-- Number of missing signals by reason.
-- 21,501 examples: 1 row: of the sources none is on but facts.
-- Columns: reason, signals
SELECT reason, count() AS signals
FROM v1_signal
WHERE domain = 'apple.com' AND state = 'missing' AND scored_at = (SELECT max(scored_at) FROM v1_score_history WHERE domain = 'apple.com')
GROUP BY reason
ORDER BY signals DESC, reason
