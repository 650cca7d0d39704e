-- recipe: sp500-financials
-- publisher: datasets/s-and-p-500-companies-financials
-- documentation: https://github.com/datasets/s-and-p-500-companies-financials
-- licence: ODC-PDDL-1.0
-- format: CSV with the header Symbol,Name,Sector,Price,...; the day in the name of the file; files of several days give growth
-- signals: market_value_usd, revenue_latest_usd, net_margin, operating_margin, total_assets_usd, public_listing, revenue_growth_yoy
-- file list: *.csv [required: Symbol, Name, Market Cap, EBITDA, Price/Earnings, Price/Sales, Price/Book, SEC Filings]
--
-- A company is found by its ticker if its name begins with the same word: exchanges give the symbol of a company that is gone to another
-- one. The newest file with a company counts. Revenue is market value over price/sales; the import derives it, so that it is no column
-- here. It has grown from a file of 330 to 400 days before. The day is in the name of the file, as 2026-08-22 or 20260822; else it is the
-- day of the import.
WITH
    -- Market value and EBITDA were written as 70.537B and 506.8M until 2013, in billions until 2017, and in dollars since. No company of
    -- the index has an amount of less than a million dollars, so a small number is billions.
    financial AS
    (
        SELECT
            CAST(ifNull(toDateOrNull(replaceAll(extract(_path, '.*/[0-9]{4}/.*(20[0-9]{2}-?[01][0-9]-?[0-3][0-9])'), '-', '')),
                toDate({day:String})), 'Date') AS day,
            `Symbol` AS symbol, `Name` AS name,
            arrayMap(text -> toFloat64OrNull(replaceRegexpOne(text, '[KMBT]$', '')) * multiIf(
                endsWith(text, 'K'), 1e3, endsWith(text, 'M'), 1e6, endsWith(text, 'B'), 1e9, endsWith(text, 'T'), 1e12,
                abs(toFloat64OrNull(text)) < 1e5, 1e9, 1), [`Market Cap`, `EBITDA`]) AS amounts,
            if(amounts[1] > 0 AND amounts[1] <= 1e15, amounts[1], NULL) AS market_cap,
            if(amounts[2] != 0 AND abs(amounts[2]) <= 1e15, amounts[2], NULL) AS ebitda,
            -- 0 stands for an unknown ratio.
            arrayMap(text -> if(abs(toFloat64OrNull(text)) BETWEEN 1e-9 AND 1e9, toFloat64OrNull(text), NULL),
                arrayConcat([`Price/Earnings`], [`Price/Sales`], [`Price/Book`])) AS ratios, -- a name with a slash must not follow a comma
            if(ratios[2] > 0, ratios[2], NULL) AS price_sales,
            startsWith(`SEC Filings`, 'http') AS is_whole, -- one row of 2013 has a cell too many
            replaceRegexpOne(lowerUTF8(name), '^the ', '') AS plain,
            extract(replaceAll(plain, '.', ''), '^[\\p{L}\\p{N}]+') AS first_word
        FROM file({list:String}, 'CSVWithNames',
            '`Symbol` String, `Name` String, `Market Cap` String, `EBITDA` String, `Price/Earnings` String,
                `Price/Sales` String, `Price/Book` String, `SEC Filings` String')
    ),

    -- Only files from 2024 on give growth. In the one of February 2018 price/sales is over nine months for 30 % of the companies, so that
    -- they seem to have shrunk by a quarter within a year. Small ratios have too few digits: 0.49 is between 0.485 and 0.495.
    newest AS
    (
        SELECT *,
            last_value(if(day >= '2024-01-01' AND price_sales >= 0.5, market_cap / price_sales, NULL))
                OVER (PARTITION BY symbol, first_word, is_whole ORDER BY day
                RANGE BETWEEN 400 PRECEDING AND 330 PRECEDING) AS revenue_before
        FROM financial
        ORDER BY is_whole DESC, day DESC
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

    known AS
    (
        SELECT symbol, domain, max(startsWith(by_ticker.name, first_word)) AS same_company
        FROM (SELECT symbol, replaceAll(symbol, '.', '-') AS ticker, first_word FROM newest) AS c INNER JOIN by_ticker USING ticker
        GROUP BY symbol, domain
    )
SELECT
    if(unmatched = '', k.domain, '') AS domain,
    toString(day) AS as_of,
    symbol AS ticker,
    market_cap AS market_cap_usd,
    ebitda AS ebitda_usd,
    ratios[1] AS pe_ratio,
    price_sales,
    ratios[3] AS price_book,
    if(price_sales >= 0.5, market_cap / price_sales / revenue_before - 1, NULL) AS `signal:revenue_growth_yoy`,
    multiIf(
        NOT is_whole, 'wrong number of cells',
        k.domain = '', 'no domain for ticker',
        NOT same_company, 'the ticker is of a company with another name',
        coalesce(market_cap, ebitda, ratios[1], price_sales, ratios[3]) IS NULL, 'no figures',
        row_number() OVER (PARTITION BY k.domain ORDER BY same_company DESC, day DESC, symbol) > 1,
            'another class of shares of the company',
        '') AS unmatched,
    concat(newest.name, ', ', symbol) AS subject
FROM newest LEFT JOIN known AS k USING symbol
SETTINGS input_format_csv_allow_variable_number_of_columns = 1
