-- name: company_search
-- Companies whose domain or name begins with a prefix in lower case, by the text that matches. A company can have several rows.
-- params: prefix String, limit UInt32. columns: text, domain.
SELECT text, domain
FROM company_search
WHERE startsWith(text, {prefix:String})
ORDER BY text, domain
LIMIT {limit:UInt32}
SETTINGS max_threads = 1, max_block_size = 1024
