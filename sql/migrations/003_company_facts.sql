-- Imported facts of companies, one row per domain.
-- An import replaces the whole row of a company, also with empty columns.
-- Unknown numbers and dates are NULL, unknown texts are empty.
-- Granularity: 256 rows, because a run reads one row.
CREATE TABLE IF NOT EXISTS company_facts
(
    domain String COMMENT 'Canonical host name of the company: lower case, punycode, no www.' CODEC(ZSTD(1)),
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
    signal Map(LowCardinality(String), Float64) COMMENT 'Raw signal values by signal id; they replace values derived from other columns' CODEC(ZSTD(1)),
    source LowCardinality(String) COMMENT 'Origin of the row; empty when not given',
    as_of Nullable(Date32) COMMENT 'Day for which the row is valid; NULL when not given',
    imported_at DateTime64(3, 'UTC') COMMENT 'Time of the import; of rows with one domain the latest counts' CODEC(Delta(8), ZSTD(1)),
    CONSTRAINT domain_given CHECK domain != ''
)
ENGINE = ReplacingMergeTree(imported_at)
ORDER BY domain
SETTINGS index_granularity = 256, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Imported facts per company. Private; reads need FINAL.';
