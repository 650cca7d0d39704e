-- Which signals make the score of a company?
-- Every signal of the newest record with its value and its points. The points sum to the base; 50 times the weight would be neutral.
-- 21,501 examples: 10 rows.
-- Columns: signal, bucket, state, raw, unit, score, weight, points, above_neutral
SELECT signal, bucket, state, raw, unit, score, round(weight, 4) AS weight, round(contribution, 2) AS points, round(contribution - 50 * v1_signal.weight, 2) AS above_neutral
FROM v1_signal
WHERE domain = 'apple.com' AND scored_at = (SELECT max(scored_at) FROM v1_score_latest WHERE domain = 'apple.com')
ORDER BY above_neutral DESC, signal
LIMIT 10
