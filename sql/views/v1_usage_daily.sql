-- Calls per account and day: the last total of the month on that day, less the last total of the previous day with calls.
CREATE OR REPLACE VIEW {public:Identifier}.v1_usage_daily
(
    `day` Date COMMENT 'Day, UTC; days without calls have no row',
    `account_id` String COMMENT 'Account',
    `account_name` String COMMENT 'Name that the operator gave to the account; unknown without an account',
    `tier` Enum8('free' = 1, 'starter' = 2, 'growth' = 3, 'scale' = 4, 'enterprise' = 5) COMMENT 'Tier of the account at the last count of the day',
    `cached_calls` UInt64 COMMENT 'Calls of the day answered from stored scores',
    `cold_calls` UInt64 COMMENT 'Cold calls charged on the day, less those refunded',
    `cached_calls_month` UInt64 COMMENT 'cached_calls since the month began, this day included',
    `cold_calls_month` UInt64 COMMENT 'cold_calls since the month began, this day included'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    day, account_id, if(a.id = '', 'unknown', a.name) AS account_name, u.tier AS tier,
    cached_calls - least(cached_calls, lagInFrame(cached_calls, 1, toUInt64(0)) OVER days) AS cached_calls,
    cold_calls - least(cold_calls, lagInFrame(cold_calls, 1, toUInt64(0)) OVER days) AS cold_calls,
    u.cached_calls AS cached_calls_month, u.cold_calls AS cold_calls_month
FROM (SELECT period, day, account_id, tier, cached_calls, cold_calls FROM usage FINAL) AS u
LEFT JOIN (SELECT id, name FROM account FINAL) AS a ON a.id = u.account_id
WINDOW days AS (PARTITION BY period, account_id ORDER BY day ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
COMMENT 'Calls per account and day. A count may be behind by seconds.';
