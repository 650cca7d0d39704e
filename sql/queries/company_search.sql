-- name: company_search
-- Companies whose domain or newest name begins with a prefix in lower case, by the text that matches. The table also has former names; of
-- these rows and the others at most rows are read.
-- params: prefix String, rows UInt32, limit UInt32. columns: domain.
WITH hits AS
(
    SELECT text, domain
    FROM company_search
    WHERE startsWith(text, {prefix:String})
    ORDER BY text, domain
    LIMIT 1 BY text, domain
    LIMIT {rows:UInt32}
)
SELECT hits.domain AS domain
FROM hits
INNER JOIN
(
    SELECT domain, lowerUTF8(company_name) AS name
    FROM score_latest
    PREWHERE domain IN (SELECT domain FROM hits)
    ORDER BY scored_at DESC, written_at DESC
    LIMIT 1 BY domain
) AS newest ON newest.domain = hits.domain
WHERE hits.text IN (hits.domain, newest.name)
ORDER BY hits.text, hits.domain
LIMIT 1 BY domain
LIMIT {limit:UInt32}
SETTINGS max_threads = 1, max_block_size = 1024
