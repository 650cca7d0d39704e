-- name: universe_batches
-- The batches of which touched records are kept, in rising order.
SELECT toUInt64(partition) AS note
FROM system.parts
WHERE active AND database = currentDatabase() AND table = 'universe_touched'
GROUP BY partition
ORDER BY note
