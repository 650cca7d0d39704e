-- recipe: bugbounty-programs
-- publisher: ProjectDiscovery, public-bugbounty-programs
-- documentation: https://github.com/projectdiscovery/public-bugbounty-programs
-- licence: MIT
-- format: JSON, an object with the array programs
-- signals: security_program
-- file list: *.json
--
-- A company with a bug bounty programme has at least one point of the signal (scoring/source/web.go), for the page on its programme. The
-- domains of a programme are the company's; the address of the programme is often that of a platform.
WITH
    -- Sites on which many companies have pages: their own programme is not meant.
    ['hackerone.com', 'bugcrowd.com', 'hackenproof.com', 'intigriti.com', 'yeswehack.com', 'immunefi.com', 'huntr.dev',
        'huntr.com', 'federacy.com', 'openbugbounty.org', 'bugbounty.ch', 'bugbounty.jp', 'bugbase.ai', 'bugbase.in', 'cobalt.io',
        'synack.com', 'safehats.com', 'yogosha.com', 'zerocopter.com', 'vulnscope.com', 'responsibledisclosure.com', 'redstorm.io',
        'cyberarmy.id', 'hackrate.com', 'gobugfree.com', 'standoff365.com', 'issuehunt.io', 'issuehunt.jp', 'topechelon.com', 'g.co',
        'google.com', 'forms.gle', 'github.com', 'github.io', 'gitlab.com', 'gitlab.io', 'bitbucket.org', 'medium.com', 'zendesk.com',
        'freshdesk.com', 'notion.site', 'notion.so', 'atlassian.net', 'wordpress.com', 'blogspot.com', 'substack.com', 'gitbook.io',
        'readme.io', 'pages.dev', 'web.archive.org', 'archive.org', 'herokuapp.com', 'vercel.app', 'netlify.app', 'amazonaws.com',
        'azurewebsites.net', 'cloudfront.net', 'office.com', 'typeform.com'] AS platforms,

    entry AS
    (
        SELECT DISTINCT JSONExtractString(program, 'name') AS name, 1 AS points,
            replaceRegexpOne(lower(trimBoth(given)), '^www\\.', '') AS host
        FROM file({list:String}, 'RawBLOB', 'text String')
        ARRAY JOIN JSONExtractArrayRaw(text, 'programs') AS program
        ARRAY JOIN arrayPushBack(JSONExtract(program, 'domains', 'Array(String)'), domain(JSONExtractString(program, 'url'))) AS given
    ),

    -- A host belongs to the longest known domain that is the host itself or a parent of it.
    candidate AS
    (
        SELECT host, from_label, arrayStringConcat(arraySlice(labels, from_label), '.') AS parent
        FROM (SELECT DISTINCT host, splitByChar('.', host) AS labels FROM entry WHERE host != '')
        ARRAY JOIN arrayEnumerate(labels) AS from_label
        WHERE from_label < length(labels)
    ),
    known AS
    (
        SELECT value AS parent, domain
        FROM file({identifiers:String}, 'TSVWithNames', 'domain String, kind String, value String')
        WHERE kind = 'domain'
    ),
    owner AS
    (
        SELECT host, argMinIf(known.domain, from_label, known.domain != '') AS domain, max(has(platforms, parent)) AS on_platform
        FROM candidate LEFT JOIN known USING parent
        GROUP BY host
    )
SELECT
    if(unmatched = '', o.domain, '') AS domain,
    {day:String} AS as_of,
    concat('>=', toString(max(points) OVER (PARTITION BY o.domain, o.on_platform))) AS `signal:security_program`,
    multiIf(
        host = '', 'no domain in the entry',
        on_platform, 'the entry names a platform only',
        o.domain = '', 'no company has this domain',
        row_number() OVER (PARTITION BY o.domain, o.on_platform ORDER BY points DESC, host, name) > 1, 'another entry of the company',
        '') AS unmatched,
    concat(name, ', ', host) AS subject
FROM entry LEFT JOIN owner AS o USING host
