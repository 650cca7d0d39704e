-- What each account consumed in each month.
--
-- Counters only make sense as totals of their month. The day is part of the key,
-- so the last total of every day stays and daily use is the difference of two
-- days; the total of a month is its newest row.
-- A month is kept for the 14 months that follow it.
CREATE TABLE IF NOT EXISTS usage
(
    period Date COMMENT 'First day of the calendar month, UTC',
    account_id String COMMENT 'Account that called',
    day Date MATERIALIZED toDate(updated_at) COMMENT 'Day of the count, UTC; one row stays per day',
    tier Enum8('free' = 1, 'starter' = 2, 'growth' = 3, 'scale' = 4, 'enterprise' = 5) COMMENT 'Plan of the account at that moment',
    cached_calls UInt64 COMMENT 'Calls answered from stored scores since the month began' CODEC(T64, ZSTD(1)),
    cold_calls UInt64 COMMENT 'Cold runs charged since the month began' CODEC(T64, ZSTD(1)),
    updated_at DateTime64(3, 'UTC') COMMENT 'Moment of the count; of rows with one key the latest counts' CODEC(Delta(8), ZSTD(1)),
    CONSTRAINT account_given CHECK account_id != ''
)
ENGINE = ReplacingMergeTree(updated_at)
PARTITION BY toYear(period)
ORDER BY (period, account_id, day)
TTL period + INTERVAL 15 MONTH
SETTINGS index_granularity = 1024
COMMENT 'Running totals per account, month and day. Private; the newest row of a month is its total.';
