-- recipe: github-owners
-- publisher: Cloud Native Computing Foundation, landscape
-- documentation: https://github.com/cncf/landscape
-- licence: Apache-2.0
-- format: CSV with the header domain,github
-- signals: github
-- file list: *.csv [required: domain, github]
--
-- Owners of repositories by domain. Domains that the service does not know yet are imported too.
SELECT
    if(unmatched = '', lower(l.domain), '') AS domain,
    {day:String} AS as_of,
    lower(l.github) AS github,
    multiIf(
        NOT match(lower(l.domain), '^[a-z0-9-]+(\\.[a-z0-9-]+)+$'), 'no valid domain',
        NOT match(lower(l.github), '^[a-z0-9](-?[a-z0-9])*-?$'), 'no valid GitHub owner',
        row_number() OVER (PARTITION BY lower(l.domain) ORDER BY l.github) > 1, 'another row of the domain',
        '') AS unmatched,
    concat(l.domain, ', ', l.github) AS subject
FROM file({list:String}, 'CSVWithNames', 'domain String, github String') AS l
