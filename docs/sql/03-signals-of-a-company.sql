-- Which signals is the newest score of a company made of?
-- The 67 signals of its newest record. A missing signal counts as a neutral 50.
-- 21,501 examples: 67 rows.
-- Columns: signal, state, raw, score, source
SELECT signal, state, raw, round(score, 1) AS score, source
FROM v1_signal
WHERE domain = 'apple.com' AND scored_at = (SELECT max(scored_at) FROM v1_score_history WHERE domain = 'apple.com')
ORDER BY signal
