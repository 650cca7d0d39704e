-- name: facts_remove
-- Removes all layers of an origin. A repeated statement writes nothing new.
-- params: origin String, import String, at_ms Int64 (time of the removal, unix ms).
INSERT INTO company_facts (domain, origin, as_of, removed, import_id, imported_at)
SELECT domain, origin, as_of, true, {import:String}, fromUnixTimestamp64Milli({at_ms:Int64}, 'UTC')
FROM company_facts FINAL
WHERE origin = {origin:String} AND NOT removed
