-- recipe: tickers
-- publisher: JerBouma/FinanceDatabase
-- documentation: https://github.com/JerBouma/FinanceDatabase
-- licence: MIT
-- format: CSV with the header domain,ticker,exchange,isin,cik,name
-- signals: ticker, exchange, isin, cik
-- file list: *.csv [required: domain, ticker, exchange, isin, cik, name]
--
-- Identifiers of companies by domain. Domains that the service does not know yet are imported too. Of the listings of a company one in the
-- United States counts, which has no exchange in its symbol, else the shortest symbol.
SELECT
    if(unmatched = '', lower(l.domain), '') AS domain,
    {day:String} AS as_of,
    upper(l.ticker) AS ticker,
    upper(l.exchange) AS exchange,
    if(match(l.isin, '^[A-Z]{2}[A-Z0-9]{9}[0-9]$'), l.isin, '') AS isin,
    replaceRegexpOne(l.cik, '^0+', '') AS cik,
    multiIf(
        NOT match(lower(l.domain), '^[a-z0-9-]+(\\.[a-z0-9-]+)+$'), 'no valid domain',
        row_number() OVER (PARTITION BY lower(l.domain) ORDER BY position(l.ticker, '.') > 0, length(l.ticker), l.ticker) > 1,
            'another listing of the company',
        '') AS unmatched,
    concat(l.name, ', ', l.ticker) AS subject
FROM file({list:String}, 'CSVWithNames', 'domain String, ticker String, exchange String, isin String, cik String, name String') AS l
