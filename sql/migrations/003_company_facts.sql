-- What operators imported about companies, one row per domain.
-- Importing a company again replaces the whole row, empty columns included: the
-- newest import is the truth, not a mixture of imports.
-- Unknown is NULL for numbers and dates, and the empty text for texts.
-- Granularity 256, because a run reads exactly one row.
CREATE TABLE IF NOT EXISTS company_facts
(
    domain String COMMENT 'Canonical host name of the company: lower case, punycode, no www.' CODEC(ZSTD(1)),
    company_name String COMMENT 'Name of the company; empty when unknown' CODEC(ZSTD(1)),
    country LowCardinality(String) COMMENT 'Seat, ISO 3166-1 alpha-2 in upper case; empty when unknown',
    region LowCardinality(String) COMMENT 'State or region of the seat; empty when unknown',
    city String COMMENT 'City of the seat; empty when unknown' CODEC(ZSTD(1)),
    industry LowCardinality(String) COMMENT 'Industry as the origin of the row calls it; empty when unknown',
    categories Array(LowCardinality(String)) COMMENT 'Further labels, most telling first' CODEC(ZSTD(1)),
    sic Nullable(UInt16) COMMENT 'Standard Industrial Classification, four digits; NULL when unknown',
    founded_year Nullable(UInt16) COMMENT 'Year of foundation; NULL when unknown',
    status LowCardinality(String) COMMENT 'Such as operating, exited or dead; empty when unknown',
    employees Nullable(Float64) COMMENT 'Headcount; NULL when unknown' CODEC(ZSTD(1)),
    revenue_usd Nullable(Float64) COMMENT 'Annual revenue in US dollars; NULL when unknown' CODEC(ZSTD(1)),
    total_assets_usd Nullable(Float64) COMMENT 'Total assets in US dollars; NULL when unknown' CODEC(ZSTD(1)),
    ebitda_usd Nullable(Float64) COMMENT 'Annual EBITDA in US dollars, may be negative; NULL when unknown' CODEC(ZSTD(1)),
    market_cap_usd Nullable(Float64) COMMENT 'Market capitalisation in US dollars; NULL when unknown' CODEC(ZSTD(1)),
    pe_ratio Nullable(Float64) COMMENT 'Price over earnings, may be negative; NULL when unknown' CODEC(ZSTD(1)),
    price_sales Nullable(Float64) COMMENT 'Price over sales; NULL when unknown' CODEC(ZSTD(1)),
    price_book Nullable(Float64) COMMENT 'Price over book value, may be negative; NULL when unknown' CODEC(ZSTD(1)),
    funding_total_usd Nullable(Float64) COMMENT 'All venture funding so far in US dollars; NULL when unknown' CODEC(ZSTD(1)),
    funding_rounds Nullable(Float64) COMMENT 'Number of funding rounds so far; NULL when unknown' CODEC(ZSTD(1)),
    founders Nullable(Float64) COMMENT 'Number of founders; NULL when unknown' CODEC(ZSTD(1)),
    hiring_regions Nullable(UInt16) COMMENT 'Number of world regions in which the company hires; NULL when unknown',
    listed Nullable(Bool) COMMENT 'Whether shares are traded on an exchange; NULL when unknown',
    signal Map(LowCardinality(String), Float64) COMMENT 'Raw signal values by signal id; they win over what is derived from other columns' CODEC(ZSTD(1)),
    source LowCardinality(String) COMMENT 'Where the row came from; empty when not said',
    as_of Nullable(Date32) COMMENT 'Day on which the row was true; NULL when not said',
    imported_at DateTime64(3, 'UTC') COMMENT 'When the row was imported; of rows with one domain the latest counts' CODEC(Delta(8), ZSTD(1)),
    CONSTRAINT domain_given CHECK domain != ''
)
ENGINE = ReplacingMergeTree(imported_at)
ORDER BY domain
SETTINGS index_granularity = 256, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Imported facts per company. Private; reads need FINAL until parts have merged.';
