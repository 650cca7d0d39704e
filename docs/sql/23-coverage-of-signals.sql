-- Which signals are known of how many companies?
-- For each signal how often its state is ok, absent or missing in the newest records. Reads all signals: on millions of
-- companies narrow it to some domains first.
-- Columns: signal, ok, absent, missing
SELECT signal, countIf(state = 'ok') AS ok, countIf(state = 'absent') AS absent, countIf(state = 'missing') AS missing
FROM v1_signal
WHERE (domain, scored_at) IN (SELECT domain, scored_at FROM v1_score_latest) AND pipeline_version = 'v1'
GROUP BY signal
ORDER BY ok DESC, signal
LIMIT 10
