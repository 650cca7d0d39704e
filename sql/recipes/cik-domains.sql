-- recipe: cik-domains
-- publisher: companyscore, from jadchaar/sec-cik-mapper and JerBouma/FinanceDatabase
-- documentation: https://github.com/jadchaar/sec-cik-mapper
-- licence: MIT
-- format: CSV with the header domain,cik,ticker,joined_by
-- signals: cik, ticker
-- file list: *.csv [required: domain, cik, ticker]
--
-- Identifiers of companies by domain. Domains that the service does not know yet are imported too.
SELECT
    if(unmatched = '', lower(l.domain), '') AS domain,
    {day:String} AS as_of,
    replaceRegexpOne(l.cik, '^0+', '') AS cik,
    upper(l.ticker) AS ticker,
    multiIf(
        NOT match(lower(l.domain), '^[a-z0-9-]+(\\.[a-z0-9-]+)+$'), 'no valid domain',
        row_number() OVER (PARTITION BY lower(l.domain) ORDER BY l.cik) > 1, 'another row of the domain',
        '') AS unmatched,
    concat(l.domain, ', CIK ', l.cik) AS subject
FROM file({list:String}, 'CSVWithNames', 'domain String, cik String, ticker String') AS l
