-- name: facts_commit
-- Copies the staged layers of an import that differ from the present ones. A repeated statement writes nothing new.
-- params: import String, at_ms Int64 (imported_at of the layers, unix ms).
INSERT INTO company_facts
SELECT new.* REPLACE(fromUnixTimestamp64Milli({at_ms:Int64}, 'UTC') AS imported_at)
FROM facts_staged AS new
LEFT ANTI JOIN
(
    SELECT domain, origin, content FROM company_facts FINAL
    WHERE NOT removed AND origin IN (SELECT DISTINCT origin FROM facts_staged WHERE import_id = {import:String})
) AS present
USING (domain, origin, content)
WHERE new.import_id = {import:String}
SETTINGS join_algorithm = 'grace_hash', max_bytes_in_join = 268435456, max_insert_threads = 2
