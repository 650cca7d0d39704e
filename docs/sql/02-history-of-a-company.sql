-- How did the score of a company develop?
-- All records, newest first, each with the change since the one before. Records of another pipeline version are left
-- out, as they cannot be compared.
-- 21,501 examples: 1 row, since each company has one record.
-- Columns: scored_at, composite, change, rating
SELECT scored_at, composite, round(composite - lagInFrame(composite, 1, composite) OVER (ORDER BY scored_at ROWS BETWEEN 1 PRECEDING AND CURRENT ROW), 1) AS change, rating
FROM v1_score_history
WHERE domain = 'apple.com' AND pipeline_version = 'v2'
ORDER BY scored_at DESC
