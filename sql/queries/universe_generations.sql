-- name: universe_generations
-- The generations that the notes have, in rising order, and how many rows each.
SELECT toUInt64(extract(partition, '[0-9]+')) AS generation, sum(rows) AS notes
FROM system.parts
WHERE active AND database = currentDatabase() AND table = 'universe_company'
GROUP BY partition
ORDER BY generation
