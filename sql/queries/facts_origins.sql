-- name: facts_origins
-- Origins of facts with the number of their companies. columns: origin, companies, oldest, newest (days), imported_at (last change).
SELECT
    origin, count() AS companies, min(as_of) AS oldest, max(as_of) AS newest, max(company_facts.imported_at) AS imported_at
FROM company_facts FINAL
WHERE NOT removed
GROUP BY origin
ORDER BY companies DESC, origin
