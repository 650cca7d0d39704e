-- Calls per account and day: each day's last running total of the month, less the one of the day before that has one.
CREATE OR REPLACE VIEW v1_usage_daily
(
    `day` Date COMMENT 'Day, UTC; days without a call have no row',
    `account_id` String COMMENT 'Account that called',
    `tier` Enum8('free' = 1, 'starter' = 2, 'growth' = 3, 'scale' = 4, 'enterprise' = 5) COMMENT 'Plan of the account at the last call of the day',
    `cached_calls` UInt64 COMMENT 'Calls of the day that were answered from stored scores',
    `cold_calls` UInt64 COMMENT 'Cold runs of the day that were charged, less those refunded',
    `cached_calls_month` UInt64 COMMENT 'The same since the month began, this day included',
    `cold_calls_month` UInt64 COMMENT 'The same since the month began, this day included'
)
AS SELECT
    day, account_id, tier,
    cached_calls - least(cached_calls, lagInFrame(cached_calls, 1, toUInt64(0)) OVER days) AS cached_calls,
    cold_calls - least(cold_calls, lagInFrame(cold_calls, 1, toUInt64(0)) OVER days) AS cold_calls,
    u.cached_calls AS cached_calls_month, u.cold_calls AS cold_calls_month
FROM (SELECT period, day, account_id, tier, cached_calls, cold_calls FROM usage FINAL) AS u
WINDOW days AS (PARTITION BY period, account_id ORDER BY day ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
COMMENT 'Calls per account and day. A count may be behind by seconds.';
