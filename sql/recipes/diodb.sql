-- recipe: diodb
-- publisher: disclose/diodb
-- documentation: https://github.com/disclose/diodb
-- licence: CC0-1.0
-- format: JSON, an array of programmes
-- signals: security_program
-- file list: *.json
--
-- The address of a company's policy for reporting vulnerabilities is on its own host. The policy is one point of the signal, and a
-- security.txt on a host of the company another one (scoring/source/web.go). What else counts is not in the list, so that the points are a
-- lower bound.
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
        SELECT lower(domainWithoutWWW(policy_url)) AS host, program_name AS name,
            if(endsWith(securitytxt_url, '/security.txt') AND lower(domainWithoutWWW(securitytxt_url)) = host, 2, 1) AS points
        FROM file({list:String}, 'JSONEachRow', 'program_name String, policy_url String, policy_url_status String, securitytxt_url String')
        WHERE policy_url_status != 'dead'
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
