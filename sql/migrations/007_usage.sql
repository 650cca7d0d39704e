-- Usage of each account in each month.
--
-- Counters are totals of the month. The day is part of the key, so the last total
-- of each day stays, and the usage of a day is the difference of two days. The
-- newest row of a month is its total.
-- Rows are kept for 14 months after their month.
CREATE TABLE IF NOT EXISTS usage
(
    period Date COMMENT 'First day of the calendar month, UTC',
    account_id String COMMENT 'Account that called',
    day Date MATERIALIZED toDate(updated_at) COMMENT 'Day of updated_at, UTC; one row stays per day',
    tier Enum8('free' = 1, 'starter' = 2, 'growth' = 3, 'scale' = 4, 'enterprise' = 5) COMMENT 'Tier of the account at that time',
    cached_calls UInt64 COMMENT 'Calls answered from stored scores since the month began' CODEC(T64, ZSTD(1)),
    cold_calls UInt64 COMMENT 'Cold calls charged since the month began, less those refunded' CODEC(T64, ZSTD(1)),
    updated_at DateTime64(3, 'UTC') COMMENT 'Time of the count; of rows with one key the latest counts' CODEC(Delta(8), ZSTD(1)),
    CONSTRAINT account_given CHECK account_id != ''
)
ENGINE = ReplacingMergeTree(updated_at)
PARTITION BY toYear(period)
ORDER BY (period, account_id, day)
TTL period + INTERVAL 15 MONTH
SETTINGS index_granularity = 1024
COMMENT 'Totals of the month per account and day. Private; the newest row of a month is its total.';
