-- The inputs of the refresh job besides records and facts: the newest day on which a caller
-- asked for a company, and when the job last started a run for it. Servers write asked_on and
-- the job writes started_at, in separate rows. Rows of a company merge in any order.
-- The table may be lost: companies then count as not asked for until the next call.
CREATE TABLE IF NOT EXISTS company_demand
(
    domain String COMMENT 'Canonical host name of the company: lower case, punycode, no www.' CODEC(ZSTD(1)),
    asked_on SimpleAggregateFunction(max, Date) COMMENT 'Newest day, UTC, on which a caller asked for the company; 1970-01-01 without a call',
    started_at SimpleAggregateFunction(max, DateTime64(3, 'UTC')) COMMENT 'When the refresh job last started a run for the company; 1970-01-01 without one',
    CONSTRAINT domain_given CHECK domain != ''
)
ENGINE = AggregatingMergeTree
ORDER BY domain
COMMENT 'Last call for each company and its last refresh. Private; read max(asked_on) and max(started_at) by domain.';
