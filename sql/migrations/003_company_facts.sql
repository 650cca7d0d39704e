-- Imported facts of companies, one row per domain and origin: a layer.
-- An import replaces the layers of its origin for the companies in it, also with
-- empty columns. A removed layer stays as a row with removed = true, so that a
-- statement sees when the facts of a company last changed.
-- Unknown numbers and dates are NULL, unknown texts are empty.
-- content: an import does not write a layer that is the same already. So imported_at
-- says when the facts changed, and a repeated import starts no run.
-- Granularity: 256 rows, because a run reads one row.
CREATE TABLE IF NOT EXISTS company_facts
(
    domain String COMMENT 'Canonical host name of the company: lower case, punycode, no www.' CODEC(ZSTD(1)),
    origin LowCardinality(String) COMMENT 'File, list or provider of the layer',
    company_name String COMMENT 'Name of the company; empty when unknown' CODEC(ZSTD(1)),
    country LowCardinality(String) COMMENT 'Country of the headquarters, ISO 3166-1 alpha-2 in upper case; empty when unknown',
    region LowCardinality(String) COMMENT 'State or region of the headquarters; empty when unknown',
    city String COMMENT 'City of the headquarters; empty when unknown' CODEC(ZSTD(1)),
    industry LowCardinality(String) COMMENT 'Industry, in the words of the origin; empty when unknown',
    categories Array(LowCardinality(String)) COMMENT 'Further labels, most specific first' CODEC(ZSTD(1)),
    sic Nullable(UInt16) COMMENT 'Standard Industrial Classification, four digits; NULL when unknown',
    founded_year Nullable(UInt16) COMMENT 'Year of foundation; NULL when unknown',
    status LowCardinality(String) COMMENT 'Status, such as operating, exited or dead; empty when unknown',
    employees Nullable(Float64) COMMENT 'Headcount; NULL when unknown' CODEC(ZSTD(1)),
    revenue_usd Nullable(Float64) COMMENT 'Annual revenue in US dollars; NULL when unknown' CODEC(ZSTD(1)),
    total_assets_usd Nullable(Float64) COMMENT 'Total assets in US dollars; NULL when unknown' CODEC(ZSTD(1)),
    ebitda_usd Nullable(Float64) COMMENT 'Annual EBITDA in US dollars, may be negative; NULL when unknown' CODEC(ZSTD(1)),
    market_cap_usd Nullable(Float64) COMMENT 'Market capitalisation in US dollars; NULL when unknown' CODEC(ZSTD(1)),
    market_cap_class LowCardinality(String) COMMENT 'Class of market capitalisation: nano, micro, small, mid, large or mega; empty when unknown',
    pe_ratio Nullable(Float64) COMMENT 'Price over earnings, may be negative; NULL when unknown' CODEC(ZSTD(1)),
    price_sales Nullable(Float64) COMMENT 'Price over sales; NULL when unknown' CODEC(ZSTD(1)),
    price_book Nullable(Float64) COMMENT 'Price over book value, may be negative; NULL when unknown' CODEC(ZSTD(1)),
    funding_total_usd Nullable(Float64) COMMENT 'Total venture funding in US dollars; NULL when unknown' CODEC(ZSTD(1)),
    funding_rounds Nullable(Float64) COMMENT 'Number of funding rounds; NULL when unknown' CODEC(ZSTD(1)),
    last_funding_date Nullable(Date32) COMMENT 'Day of the last funding round; NULL when unknown',
    founders Nullable(Float64) COMMENT 'Number of founders; NULL when unknown' CODEC(ZSTD(1)),
    hiring_regions Nullable(UInt16) COMMENT 'Number of world regions in which the company hires; NULL when unknown',
    listed Nullable(Bool) COMMENT 'Whether shares are traded on an exchange; NULL when unknown',
    ticker LowCardinality(String) COMMENT 'Stock symbol; empty when unknown',
    exchange LowCardinality(String) COMMENT 'Exchange of the symbol; empty when unknown',
    cik String COMMENT 'Number of a filer with the SEC, without leading zeros; empty when unknown' CODEC(ZSTD(1)),
    lei String COMMENT 'Legal Entity Identifier; empty when unknown' CODEC(ZSTD(1)),
    isin String COMMENT 'International Securities Identification Number; empty when unknown' CODEC(ZSTD(1)),
    github String COMMENT 'Login of the organisation on GitHub, lower case; empty when unknown' CODEC(ZSTD(1)),
    wikidata String COMMENT 'Id of the item in Wikidata, such as Q312; empty when unknown' CODEC(ZSTD(1)),
    signal Map(LowCardinality(String), Float64) COMMENT 'Raw signal values by signal id; they replace values derived from other columns' CODEC(ZSTD(1)),
    at_least Array(LowCardinality(String)) COMMENT 'Columns of the import file whose values are lower bounds' CODEC(ZSTD(1)),
    source LowCardinality(String) COMMENT 'Where the row came from, in the words of the file; empty when not given',
    as_of Date32 COMMENT 'Day for which the row is valid; that of the import when not given',
    content UInt64 DEFAULT cityHash64(toString((
        company_name, country, region, city, industry, categories, sic, founded_year, status, employees, revenue_usd, total_assets_usd, ebitda_usd,
        market_cap_usd, market_cap_class, pe_ratio, price_sales, price_book, funding_total_usd, funding_rounds, last_funding_date, founders,
        hiring_regions, listed, ticker, exchange, cik, lei, isin, github, wikidata, mapSort(signal), at_least, source, as_of
    ))) COMMENT 'Hash of all facts of the layer',
    removed Bool COMMENT 'Whether the layer was removed',
    import_id LowCardinality(String) COMMENT 'Import that wrote the row',
    imported_at DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'Time of the last change; of rows with one domain and origin the latest counts' CODEC(Delta(8), ZSTD(1)),
    CONSTRAINT domain_given CHECK domain != ''
)
ENGINE = ReplacingMergeTree(imported_at)
ORDER BY (domain, origin)
SETTINGS index_granularity = 256, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Imported facts per company and origin. Private; query v1_fact.';
