-- Which known signals of a company score lowest?
-- The five lowest signals that are not missing.
-- 21,501 examples: 5 rows.
-- Columns: signal, raw, score
SELECT signal, raw, round(score, 1) AS score
FROM v1_signal
WHERE domain = 'apple.com' AND state != 'missing' AND scored_at = (SELECT max(scored_at) FROM v1_score_history WHERE domain = 'apple.com')
ORDER BY score, signal
LIMIT 5
