-- What does 50 mean for each signal?
-- The ten signals with the largest weight, with the values that score 20, 50 and 80.
-- 21,501 examples: 10 rows.
-- Columns: signal, bucket, unit, weight, raw_p10, raw_p50, raw_p90, population
SELECT signal, bucket, unit, weight, raw_p10, raw_p50, raw_p90, population
FROM v1_signal_definition
ORDER BY weight DESC, position
LIMIT 10
