-- Which known signals of a company score lowest?
-- The five lowest signals that are not missing.
-- Columns: signal, raw, score
SELECT signal, raw, round(score, 1) AS score
FROM v1_signal
WHERE domain = 'example.com' AND state != 'missing' AND scored_at = (SELECT max(scored_at) FROM v1_score_history WHERE domain = 'example.com')
ORDER BY score, signal
LIMIT 5
