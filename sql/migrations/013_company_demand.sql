-- What the refresh job has to know of a company beside its records: when somebody asked for it last, and when the job
-- started a run for it last. Servers write the one and the job the other; each row says one of them, and rows of a
-- company add up, in whatever order they arrive.
-- Losing the table is harmless: companies count as not asked for until they are again.
CREATE TABLE IF NOT EXISTS company_demand
(
    domain String COMMENT 'Canonical host name of the company: lower case, punycode, no www.' CODEC(ZSTD(1)),
    asked_on SimpleAggregateFunction(max, Date) COMMENT 'Newest day, in UTC, on which a caller asked for the company; 1970-01-01 when none did',
    started_at SimpleAggregateFunction(max, DateTime64(3, 'UTC')) COMMENT 'When the refresh job started a run for the company last; 1970-01-01 when it never did',
    CONSTRAINT domain_given CHECK domain != ''
)
ENGINE = AggregatingMergeTree
ORDER BY domain
COMMENT 'When each company was asked for, and refreshed, last. Private; read max(asked_on) and max(started_at) by domain.';
