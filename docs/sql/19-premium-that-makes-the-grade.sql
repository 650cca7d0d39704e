-- For whom does the premium decide the grade?
-- Companies that would not be SVC-1 without their scale premium, and how much of their data is known.
-- 21,501 examples: 4 rows.
-- Columns: domain, composite, scale_premium, without_premium, completeness_pct
SELECT domain, composite, scale_premium, round(composite - scale_premium, 1) AS without_premium, completeness_pct
FROM v1_score_latest
WHERE composite >= 65 AND without_premium < 65
ORDER BY scale_premium DESC, domain
LIMIT 100
