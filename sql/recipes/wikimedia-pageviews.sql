-- recipe: wikimedia-pageviews
-- publisher: Wikimedia Foundation
-- documentation: https://dumps.wikimedia.org/other/pageviews/readme.html
-- licence: CC0-1.0
-- format: hourly files pageviews-YYYYMMDD-HH0000.gz of 30 days, and a CSV with the header domain,title
-- signals: wikipedia_pageviews_30d
-- file views: pageviews-*
-- file titles: titles*.csv [required: domain, title]
--
-- The views of the English article of a company, on desktop and mobile. The service does not know the titles of articles, so that a file
-- names them: Wikidata has them (Special:EntityData, or the query service: sitelinks of enwiki). Of the 720 hours before the newest one at
-- least 648 must be there; what is missing is filled in with the mean.
WITH
    title AS
    (
        SELECT lower(t.domain) AS domain, replaceAll(t.title, ' ', '_') AS article
        FROM file({titles:String}, 'CSVWithNames', 'domain String, title String') AS t
        WHERE article != ''
        ORDER BY domain, article
        LIMIT 1 BY domain
    ),

    hour AS
    (
        SELECT parseDateTimeOrNull(CAST(extract(_path, 'pageviews-([0-9]{8}-[0-9]{2})'), 'String'), '%Y%m%d-%H', 'UTC') AS at,
            splitByChar(' ', text) AS cells
        FROM file({views:String}, 'LineAsString', 'text String')
        WHERE startsWith(text, 'en ') OR startsWith(text, 'en.m ')
    ),

    -- Files of the last 720 hours. Each has some article of the English Wikipedia.
    (SELECT max(at) FROM hour) AS newest,
    (SELECT uniqExact(at) FROM hour WHERE at > newest - 720 * 3600) AS hours,

    article AS
    (
        SELECT cells[2] AS article, sum(toUInt64OrZero(cells[3])) AS views
        FROM hour
        WHERE at > newest - 720 * 3600 AND article IN (SELECT article FROM title)
        GROUP BY article
    ),
    known AS
    (
        SELECT DISTINCT domain, 1 AS is_known
        FROM file({identifiers:String}, 'TSVWithNames', 'domain String, kind String, value String')
        WHERE kind = 'domain'
    )
SELECT
    if(unmatched = '', title.domain, '') AS domain,
    toString(toDate(newest)) AS as_of,
    round(article.views * 720 / hours) AS `signal:wikipedia_pageviews_30d`,
    multiIf(
        hours < 648, 'the files have less than 648 of 720 hours',
        NOT known.is_known, 'no company has this domain',
        article.article = '', 'the article has no views',
        '') AS unmatched,
    concat(title.domain, ', ', title.article) AS subject
FROM title
LEFT JOIN article ON article.article = title.article
LEFT JOIN known ON known.domain = title.domain
