-- name: facts_import_newest
-- Digests of the newest complete import of each recipe, and of each file that no recipe read. columns: recipe, file (empty for a recipe), digest.
SELECT recipe, if(recipe = '', facts_import.file, '') AS file, argMax(facts_import.digest, committed_at) AS digest
FROM facts_import FINAL
WHERE kind = 'import' AND state = 'done' AND facts_import.digest != ''
GROUP BY recipe, file
