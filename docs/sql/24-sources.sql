-- Which source answers most?
-- Known signals of newest records by the source whose value was used.
-- 21,501 examples: 1 row.
-- Columns: source, signals
SELECT signal_source AS source, count() AS signals
FROM v1_signal_latest
ARRAY JOIN mapValues(v1_signal_latest.source) AS signal_source, mapValues(state) AS signal_state
WHERE signal_state IN ('ok', 'absent')
GROUP BY signal_source
ORDER BY signals DESC, source
