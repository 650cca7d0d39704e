-- recipe: github-ranking
-- publisher: EvanLi/Github-Ranking
-- documentation: https://github.com/EvanLi/Github-Ranking
-- licence: MIT
-- format: CSV with the header rank,item,repo_name,stars,...; the day in the name of the file
-- signals: github_stars_total
-- file list: *.csv [required: stars, repo_url, username]
--
-- The list has the most starred repositories only. The stars of an owner's listed repositories are a lower bound of all its stars. The days
-- since the last push are no signal of this recipe: a repository that is not listed can have a later push, and an import has no upper
-- bounds. The newest file with an owner counts. The day is in the name of the file, as 2026-08-22 or 20260822; else it is the day of
-- the import.
WITH
    -- A repository stands in the list of all languages and in that of its own.
    repository AS
    (
        SELECT
            ifNull(toDateOrNull(replaceAll(extract(_path, '.*/[0-9]{4}/.*(20[0-9]{2}-?[01][0-9]-?[0-3][0-9])'), '-', '')),
                toDate({day:String})) AS day,
            lower(username) AS owner, lower(repo_url) AS url, max(toUInt32OrNull(stars)) AS starred
        FROM file({list:String}, 'CSVWithNames', 'stars String, repo_url String, username String')
        GROUP BY day, owner, url
    ),

    owner AS
    (
        SELECT day, owner AS github, sum(starred) AS stars, count() AS repositories
        FROM repository
        WHERE owner != ''
        GROUP BY day, owner
        ORDER BY day DESC
        LIMIT 1 BY owner
    ),

    known AS
    (
        SELECT value AS github, domain
        FROM file({identifiers:String}, 'TSVWithNames', 'domain String, kind String, value String')
        WHERE kind = 'github'
    )
SELECT
    domain,
    toString(day) AS as_of,
    concat('>=', toString(stars)) AS `signal:github_stars_total`,
    if(domain = '', 'no domain for GitHub owner', '') AS unmatched,
    concat(github, ', ', toString(repositories), ' repositories') AS subject
FROM owner LEFT JOIN known USING github
