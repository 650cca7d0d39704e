-- recipe: wikidata-entities
-- publisher: Wikidata
-- documentation: https://www.wikidata.org/wiki/Wikidata:Database_download
-- licence: CC0-1.0
-- format: JSON dump: an array with an entity a line, gzip, bzip2 or plain; the day in the name of the file
-- signals: employee_count, organization_age_years, revenue_latest_usd, wikipedia_language_count, public_listing, lei, cik, isin, ticker, github, wikidata
-- file list: *.json
--
-- The rules are those of scoring/source/wikidata.go. An item belongs to the company whose domain is the host of its official website. The
-- day is in the name of the file, as 2026-08-22 or 20260822; else it is the day of the import.
WITH
    toDate({day:String}) AS today,
    ['commonswiki', 'specieswiki', 'metawiki', 'wikidatawiki', 'mediawikiwiki', 'sourceswiki', 'wikimaniawiki', 'outreachwiki', 'incubatorwiki',
        'foundationwiki', 'wikifunctionswiki'] AS not_editions,
    ['P1128', 'P2139', 'P571', 'P452', 'P414', 'P159'] AS telling, -- properties of companies that products and brands do not have

    known AS
    (
        SELECT value AS host, domain
        FROM file({identifiers:String}, 'TSVWithNames', 'domain String, kind String, value String')
        WHERE kind = 'domain'
    ),

    -- The statements of the properties that are read, without deprecated ones. best are the preferred ones, or all if there are none,
    -- without those that have ended.
    item AS
    (
        SELECT
            day, entity,
            JSONExtractString(entity, 'id') AS qid,
            arrayMap(p -> arrayFilter(s -> JSONExtractString(s, 'rank') != 'deprecated', JSONExtractArrayRaw(entity, 'claims', p)), [
                'P856', 'P1128', 'P2139', 'P571', 'P576', 'P414', 'P249', 'P1278', 'P5531', 'P946', 'P2037', 'P452', 'P159']) AS all,
            arrayMap(statements -> if(arrayExists(s -> JSONExtractString(s, 'rank') = 'preferred', statements),
                arrayFilter(s -> JSONExtractString(s, 'rank') = 'preferred', statements), statements), all) AS preferred,
            arrayMap(statements -> arrayFilter(s -> NOT JSONHas(s, 'qualifiers', 'P582'), statements), preferred) AS best,
            arrayMap(statements -> arrayMap(s -> trimBoth(JSONExtractString(s, 'mainsnak', 'datavalue', 'value')), statements), best) AS texts,
            arrayMap(url -> (lower(domainWithoutWWW(url)), path(url) IN ('', '/')),
                arrayFilter(url -> match(url, '^https?://\\S+$'), texts[1])) AS sites
        FROM
        (
            SELECT
                ifNull(toDateOrNull(replaceAll(extract(_path, '.*/[0-9]{4}/.*(20[0-9]{2}-?[01][0-9]-?[0-3][0-9])'), '-', '')), today) AS day,
                trimRight(text, ',\r ') AS entity
            FROM file({list:String}, 'LineAsString', 'text String')
            WHERE position(text, '"P856"') > 0
        )
        WHERE NOT arrayExists(s -> JSONExtractString(s, 'mainsnak', 'datavalue', 'value', 'id') = 'Q5', -- a person
            JSONExtractArrayRaw(entity, 'claims', 'P31'))
    ),

    company AS
    (
        SELECT
            day, qid, sites,
            coalesce(nullIf(JSONExtractString(entity, 'labels', 'en', 'value'), ''),
                JSONExtractString(entity, 'labels', 'mul', 'value')) AS label,
            -- Amounts: the day of P585 (1970-01-01 if there is none), the number and its unit. The newest counts, up to six years old.
            arrayMap(statements -> arraySort(a -> a.1, arrayFilter(a -> a.1 <= today AND a.2 > 0, arrayMap(s -> (
                ifNull(toDate32OrNull(replaceAll(replaceAll(
                    substring(JSONExtractString(s, 'qualifiers', 'P585', 1, 'datavalue', 'value', 'time'), 2, 10),
                    '-00-00', '-07-01'), '-00', '-15')), toDate32('1970-01-01')),
                ifNull(toFloat64OrNull(JSONExtractString(s, 'mainsnak', 'datavalue', 'value', 'amount')), 0),
                extract(JSONExtractString(s, 'mainsnak', 'datavalue', 'value', 'unit'), 'Q[0-9]+$')), statements))),
                [preferred[2], preferred[3]]) AS amounts,
            arrayMap(a -> if(a[-1].1 = toDate32('1970-01-01') OR a[-1].1 >= today - 6 * 365, a[-1], NULL), amounts) AS newest,
            arrayFilter(y -> y BETWEEN 1000 AND toYear(today), arrayMap(s -> if(
                JSONExtractInt(s, 'mainsnak', 'datavalue', 'value', 'precision') >= 9,
                toUInt16OrZero(extract(JSONExtractString(s, 'mainsnak', 'datavalue', 'value', 'time'), '^\\+([0-9]{4})-')), 0),
                preferred[4])) AS founded,
            arrayCount(site -> endsWith(site, 'wiki') AND NOT has(not_editions, site), JSONExtractKeys(entity, 'sitelinks')) AS editions,
            JSONLength(entity, 'sitelinks') AS sitelinks,
            arrayCount(p -> JSONHas(entity, 'claims', p), telling) AS company_properties,
            arrayExists(s -> JSONExtractString(s, 'mainsnak', 'snaktype') != 'novalue', preferred[5]) AS dissolved,
            arrayFilter(s -> NOT JSONHas(s, 'qualifiers', 'P582'), all[6]) AS listings,
            arrayFirst(t -> match(t, '^[A-Z0-9.-]{1,12}$'), arrayConcat(texts[7],
                arrayMap(s -> JSONExtractString(s, 'qualifiers', 'P249', 1, 'datavalue', 'value'), listings))) AS ticker,
            arrayFirst(t -> match(t, '^[A-Z0-9]{18}[0-9]{2}$'), texts[8]) AS lei,
            replaceRegexpOne(arrayFirst(t -> match(t, '^[0-9]{1,10}$'), texts[9]), '^0+', '') AS cik,
            arrayFirst(t -> match(t, '^[A-Z]{2}[A-Z0-9]{9}[0-9]$'), texts[10]) AS isin,
            lower(arrayFirst(t -> match(t, '^[A-Za-z0-9](-?[A-Za-z0-9])*$'), texts[11])) AS github
        FROM item
    ),

    -- Addresses with a path count if no item has the root of the host.
    website AS
    (
        SELECT company.*, site.1 AS host, site.2 AS is_root
        FROM company
        ARRAY JOIN arrayDistinct(if(empty(sites), [('', false)], sites)) AS site
    )
SELECT
    if(unmatched = '', k.domain, '') AS domain,
    toString(day) AS as_of,
    label AS company_name,
    qid AS wikidata,
    lei, cik, isin, ticker, github,
    if(empty(amounts[1]), NULL, newest[1].2) AS employees,
    if(empty(amounts[2]) OR newest[2].3 != 'Q4917', NULL, newest[2].2) AS revenue_usd,
    if(empty(founded), NULL, arrayMin(founded)) AS founded_year,
    if(empty(listings), NULL, 'true') AS listed,
    editions AS `signal:wikipedia_language_count`,
    multiIf(
        host = '', 'no official website',
        k.domain = '', 'no company has this website',
        row_number() OVER (PARTITION BY host ORDER BY is_root DESC, dissolved, company_properties DESC, sitelinks DESC, length(qid),
            qid) > 1,
            'another item of the website',
        '') AS unmatched,
    concat(label, ', ', qid) AS subject
FROM website LEFT JOIN known AS k USING host
