-- recipe: cik-mapper
-- publisher: jadchaar/sec-cik-mapper
-- documentation: https://github.com/jadchaar/sec-cik-mapper
-- licence: MIT
-- format: CSV with the header CIK,Ticker,Name,Exchange
-- signals: cik, ticker, exchange
-- file list: *.csv [required: CIK, Ticker, Name, Exchange]
--
-- A company is found by its ticker if its name begins with the same word, else by its name of at least two words if only one company and
-- one filer have it. So does the live source (scoring/source/sec.go).
WITH
    '( (ab|ag|aktiengesellschaft|as|asa|aps|bhd|bv|co|company|corp|corporation|doo|gmbh|group|holding|holdings|inc|incorporated|'
        || 'jsc|kg|kgaa|kk|limited|llc|llp|lp|ltd|ltda|mbh|nv|ohg|oy|oyj|plc|pllc|pte|pty|pvt|sa|sab|sarl|sas|sasu|se|sl|sp|spa|spzoo|'
        || 'srl|sro|ug|ulc|zoo|and))+$' AS legal_forms,

    filer AS
    (
        SELECT replaceRegexpOne(`CIK`, '^0+', '') AS cik, upper(`Ticker`) AS ticker, `Name` AS title, upper(`Exchange`) AS exchange,
            -- The name as scoring/source/companyname.go normalises it.
            trimBoth(replaceRegexpAll(replaceRegexpAll(replaceAll(lowerUTF8(title), '&', ' and '), '[.\'’]', ''), '[^\\p{L}\\p{N}]+', ' '))
                AS words,
            replaceRegexpOne(replaceRegexpOne(words, legal_forms, ''), '^the ', '') AS plain,
            splitByChar(' ', plain)[1] AS first_word,
            replaceAll(plain, ' ', '') AS name
        FROM file({list:String}, 'CSVWithNames', '`CIK` String, `Ticker` String, `Name` String, `Exchange` String')
        WHERE match(cik, '^[0-9]{1,10}$')
    ),

    identifier AS
    (
        SELECT domain, kind, value FROM file({identifiers:String}, 'TSVWithNames', 'domain String, kind String, value String')
    ),
    names AS (SELECT value AS name, domain FROM identifier WHERE kind = 'name'),

    known AS
    (
        SELECT cik, domain, 1 AS way
        FROM filer
        INNER JOIN
        (
            SELECT ticker, names.name AS known_name, domain
            FROM (SELECT value AS ticker, domain FROM identifier WHERE kind = 'ticker') AS t INNER JOIN names USING domain
        ) AS by_ticker USING ticker
        WHERE length(first_word) > 1 AND startsWith(known_name, first_word)
        UNION DISTINCT
        SELECT cik, domain, 2 AS way
        FROM (SELECT name, any(cik) AS cik FROM filer WHERE position(plain, ' ') > 0 GROUP BY name HAVING uniqExact(filer.cik) = 1) AS f
        INNER JOIN (SELECT name, any(domain) AS domain FROM names GROUP BY name HAVING uniqExact(names.domain) = 1) AS n USING name
    ),
    chosen AS
    (
        SELECT cik, domain, way FROM (SELECT cik, domain, way, min(way) OVER (PARTITION BY cik) AS best FROM known) WHERE way = best
    )
SELECT
    if(unmatched = '', c.domain, '') AS domain,
    {day:String} AS as_of,
    cik,
    ticker,
    exchange,
    multiIf(
        c.domain = '', 'no domain for ticker or name',
        row_number() OVER (PARTITION BY c.domain ORDER BY way, length(ticker), ticker) > 1, 'another ticker or filer of the domain',
        '') AS unmatched,
    concat(title, ', ', ticker) AS subject
FROM filer LEFT JOIN chosen AS c USING cik
