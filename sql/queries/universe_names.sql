-- name: universe_names
-- Names of some companies by their newest record of a pipeline version. params: version String, domains Array(String).
SELECT domain, company_name
FROM score_latest
WHERE pipeline_version = {version:String} AND domain IN {domains:Array(String)}
ORDER BY scored_at DESC, written_at DESC
LIMIT 1 BY domain
