-- name: facts_import_newest
-- The newest complete import of each recipe, and of each file and content that no recipe read, oldest first.
-- columns: recipe, file (empty for a recipe), digest.
SELECT
    recipe, if(recipe = '', facts_import.file, '') AS file, argMax(facts_import.digest, committed_at) AS digest
FROM facts_import FINAL
WHERE kind = 'import' AND state = 'done' AND facts_import.digest != ''
GROUP BY recipe, file, if(recipe = '', facts_import.digest, '')
ORDER BY max(committed_at)
