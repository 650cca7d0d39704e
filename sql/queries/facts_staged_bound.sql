-- name: facts_staged_bound
-- The last domain of a page of staged layers; no row for the last page. params: import String, after String (last domain of the page before), rows UInt32
-- (of a page).
SELECT domain FROM facts_staged
WHERE import_id = {import:String} AND domain > {after:String}
ORDER BY domain
LIMIT 1 OFFSET {rows:UInt32}
