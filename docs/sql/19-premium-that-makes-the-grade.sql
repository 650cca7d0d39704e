-- For whom does the premium decide the grade?
-- Companies that would not be SVC-1 without their scale premium, of those with medium or high confidence.
-- Columns: domain, composite, scale_premium, without_premium
SELECT domain, composite, scale_premium, round(composite - scale_premium, 1) AS without_premium
FROM v1_score_latest
WHERE composite >= 65 AND without_premium < 65 AND confidence >= 'medium'
ORDER BY scale_premium DESC, domain
LIMIT 100
