-- Which signals are known of how many companies?
-- For each signal how often its state is ok, absent or missing in the newest records.
-- 21,501 examples: 10 rows.
-- Columns: signal, ok, absent, missing
SELECT pair.1 AS signal, countIf(pair.2 = 'ok') AS ok, countIf(pair.2 = 'absent') AS absent, countIf(pair.2 = 'missing') AS missing
FROM v1_signal_latest
ARRAY JOIN state AS pair
GROUP BY signal
ORDER BY ok DESC, signal
LIMIT 10
