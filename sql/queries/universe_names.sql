-- name: universe_names
-- What companies are called by the record that was counted, one row each, for some of those that a batch noted.
-- params: generation UInt64, note UInt64, version String, companies Array(UInt64).
SELECT company, domain, company_name AS name, sector, geo_scope, toString(profile) AS profile
FROM universe_record
WHERE pipeline_version = {version:String} AND company IN {companies:Array(UInt64)} AND (company, stamp) IN
(
    SELECT company, latest FROM universe_company
    WHERE generation = {generation:UInt64} AND position = {note:UInt64} AND sign = 1 AND company IN {companies:Array(UInt64)}
)
LIMIT 1 BY company
