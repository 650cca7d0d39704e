-- recipe: sp500-constituents
-- publisher: datasets/s-and-p-500-companies
-- documentation: https://github.com/datasets/s-and-p-500-companies
-- licence: ODC-PDDL-1.0
-- format: CSV with the header Symbol,Security,GICS Sector,...
-- signals: organization_age_years, public_listing
-- file list: *.csv [required: Symbol, Security, GICS Sector, GICS Sub-Industry, Headquarters Location, CIK, Founded]
--
-- A company is found by its CIK, else by its ticker if its name begins with the same word: exchanges give the symbol of a company that is
-- gone to another one. Of the years founded the first counts; those in brackets are of predecessors. The day is in the name of the file, as
-- 2026-08-22 or 20260822; else it is the day of the import.
WITH
    ['Alabama', 'Alaska', 'Arizona', 'Arkansas', 'California', 'Colorado', 'Connecticut', 'D.C.', 'Delaware', 'Florida', 'Georgia', 'Hawaii',
        'Idaho', 'Illinois', 'Indiana', 'Iowa', 'Kansas', 'Kentucky', 'Louisiana', 'Maine', 'Maryland', 'Massachusetts', 'Michigan',
        'Minnesota', 'Mississippi', 'Missouri', 'Montana', 'Nebraska', 'Nevada', 'New Hampshire', 'New Jersey', 'New Mexico', 'New York',
        'North Carolina', 'North Dakota', 'Ohio', 'Oklahoma', 'Oregon', 'Pennsylvania', 'Rhode Island', 'South Carolina', 'South Dakota',
        'Tennessee', 'Texas', 'Utah', 'Vermont', 'Virginia', 'Washington', 'West Virginia', 'Wisconsin', 'Wyoming'] AS states,
    ['Bermuda', 'Canada', 'Ireland', 'Netherlands', 'Singapore', 'Switzerland', 'United Kingdom'] AS countries,

    constituent AS
    (
        SELECT
            ifNull(toDateOrNull(replaceAll(extract(_path, '.*/[0-9]{4}/.*(20[0-9]{2}-?[01][0-9]-?[0-3][0-9])'), '-', '')),
                toDate({day:String})) AS day,
            `Symbol` AS symbol, `Security` AS security, `GICS Sector` AS sector, `GICS Sub-Industry` AS industry,
            replaceRegexpOne(`CIK`, '^0+', '') AS cik, toUInt16OrNull(extract(`Founded`, '^[0-9]{4}')) AS founded_year,
            -- Of several seats the first counts. A number in square brackets is a footnote.
            splitByString(', ', replaceRegexpAll(splitByString('; ', `Headquarters Location`)[1], '\\[[0-9]+\\]', '')) AS seat,
            seat[-1] AS place,
            -- The name as letters and digits without its first "the", and the first word of that.
            replaceRegexpOne(lowerUTF8(security), '^the ', '') AS plain,
            extract(replaceAll(plain, '.', ''), '^[\\p{L}\\p{N}]+') AS first_word
        FROM file({list:String}, 'CSVWithNames',
            '`Symbol` String, `Security` String, `GICS Sector` String, `GICS Sub-Industry` String,
                `Headquarters Location` String, `CIK` String, `Founded` String')
        ORDER BY day DESC, symbol
        LIMIT 1 BY symbol
    ),

    identifier AS
    (
        SELECT domain, kind, value FROM file({identifiers:String}, 'TSVWithNames', 'domain String, kind String, value String')
    ),

    by_ticker AS
    (
        SELECT ticker, name, domain
        FROM (SELECT replaceAll(value, '.', '-') AS ticker, domain FROM identifier WHERE kind = 'ticker') AS t
        INNER JOIN (SELECT value AS name, domain FROM identifier WHERE kind = 'name') AS n USING domain
    ),

    -- The domains of each symbol: those of its CIK, else those of its ticker.
    known AS
    (
        SELECT symbol, domain, 1 AS way
        FROM constituent INNER JOIN (SELECT value AS cik, domain FROM identifier WHERE kind = 'cik') AS by_cik USING cik
        UNION DISTINCT
        SELECT symbol, domain, 2 AS way
        FROM (SELECT symbol, replaceAll(symbol, '.', '-') AS ticker, first_word FROM constituent) AS c INNER JOIN by_ticker USING ticker
        WHERE length(first_word) > 1 AND startsWith(name, first_word)
    ),
    chosen AS
    (
        SELECT symbol, domain FROM (SELECT symbol, domain, way, min(way) OVER (PARTITION BY symbol) AS best FROM known) WHERE way = best
    )
SELECT
    if(unmatched = '', c.domain, '') AS domain,
    toString(day) AS as_of,
    security AS company_name,
    sector AS categories,
    industry,
    if(length(seat) > 1, seat[1], NULL) AS city,
    if(has(states, place), place, NULL) AS region,
    multiIf(has(states, place), 'US', has(countries, place), place, NULL) AS country,
    founded_year,
    'true' AS listed,
    symbol AS ticker,
    cik,
    multiIf(
        c.domain = '', 'no domain for CIK or ticker',
        row_number() OVER (PARTITION BY c.domain ORDER BY symbol) > 1, 'another class of shares of the company',
        '') AS unmatched,
    concat(security, ', ', symbol) AS subject
FROM constituent LEFT JOIN chosen AS c USING symbol
