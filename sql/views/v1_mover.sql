-- Companies whose score differs between the last record before a window and the last record within it. Windows end now. Records
-- are read in the order of domain, so ClickHouse aggregates one company at a time, and a condition on domain is fast. The values
-- of a record are one number, because numbers aggregate several times faster than tuples: from the lowest bits confidence (3),
-- tenths of completeness (10) and of the premium (7), grade (3) and tenths of the composite.
-- Of unmerged copies of a record the one that was written last counts.
CREATE OR REPLACE VIEW {public:Identifier}.v1_mover
(
    `domain` String COMMENT 'Canonical host name of the company',
    `window_days` UInt8 COMMENT 'Length of the window: 7, 30 or 90 days until now',
    `company_name` String COMMENT 'Company name in the newest record',
    `sector` LowCardinality(String) COMMENT 'Sector in the newest record',
    `composite_now` Float64 COMMENT 'Newest composite',
    `composite_then` Float64 COMMENT 'Last composite before the window',
    `delta` Float64 COMMENT 'composite_now minus composite_then, in steps of 0.1; never 0',
    `premium_delta` Float64 COMMENT 'Part of delta that is the scale premium, in steps of 0.1; the rest is observed values and coverage, see completeness',
    `rating_now` Enum8('SVC-5' = 1, 'SVC-4' = 2, 'SVC-3' = 3, 'SVC-2' = 4, 'SVC-2+' = 5, 'SVC-1' = 6, 'SVC-1+' = 7) COMMENT 'Newest grade',
    `rating_then` Enum8('SVC-5' = 1, 'SVC-4' = 2, 'SVC-3' = 3, 'SVC-2' = 4, 'SVC-2+' = 5, 'SVC-1' = 6, 'SVC-1+' = 7) COMMENT 'Last grade before the window',
    `completeness_pct_now` Float64 COMMENT 'Completeness of the newest record, in percent',
    `completeness_pct_then` Float64 COMMENT 'Completeness of the last record before the window, in percent: if it differs, part of delta is coverage',
    `confidence_now` Enum8('directional' = 1, 'low' = 2, 'medium' = 3, 'high' = 4) COMMENT 'Confidence of the newest record; sorts from lowest to highest',
    `confidence_then` Enum8('directional' = 1, 'low' = 2, 'medium' = 3, 'high' = 4) COMMENT 'Confidence of the last record before the window; sorts from lowest to highest',
    `scored_at_now` DateTime64(3, 'UTC') COMMENT 'scored_at of the newest record',
    `scored_at_then` DateTime64(3, 'UTC') COMMENT 'scored_at of the last record before the window'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    domain, side.1 AS window_days, company_name, sector,
    bitShiftRight(newest, 23) / 10 AS composite_now, bitShiftRight(side.3, 23) / 10 AS composite_then,
    (toInt32(bitShiftRight(newest, 23)) - toInt32(bitShiftRight(side.3, 23))) / 10 AS delta,
    (toInt32(bitShiftRight(newest, 13) % 128) - toInt32(bitShiftRight(side.3, 13) % 128)) / 10 AS premium_delta,
    CAST(toInt8(bitShiftRight(newest, 20) % 8), 'Enum8(\'SVC-5\' = 1, \'SVC-4\' = 2, \'SVC-3\' = 3, \'SVC-2\' = 4, \'SVC-2+\' = 5, \'SVC-1\' = 6, \'SVC-1+\' = 7)') AS rating_now,
    CAST(toInt8(bitShiftRight(side.3, 20) % 8), 'Enum8(\'SVC-5\' = 1, \'SVC-4\' = 2, \'SVC-3\' = 3, \'SVC-2\' = 4, \'SVC-2+\' = 5, \'SVC-1\' = 6, \'SVC-1+\' = 7)') AS rating_then,
    bitShiftRight(newest, 3) % 1024 / 10 AS completeness_pct_now, bitShiftRight(side.3, 3) % 1024 / 10 AS completeness_pct_then,
    CAST(toInt8(newest % 8), 'Enum8(\'directional\' = 1, \'low\' = 2, \'medium\' = 3, \'high\' = 4)') AS confidence_now,
    CAST(toInt8(side.3 % 8), 'Enum8(\'directional\' = 1, \'low\' = 2, \'medium\' = 3, \'high\' = 4)') AS confidence_then,
    last_at AS scored_at_now, side.2 AS scored_at_then
FROM
(
    WITH
        bitShiftLeft(toUInt64(round(composite * 10)), 23) + bitShiftLeft(toUInt64(rating), 20) + bitShiftLeft(toUInt64(round(scale_premium * 10)), 13)
            + bitShiftLeft(toUInt64(round(completeness_pct * 10)), 3) + toUInt64(confidence) AS score,
        bitShiftLeft(toUInt128(toUnixTimestamp64Milli(scored_at)), 64) + toUnixTimestamp64Milli(written_at) AS age
    SELECT
        domain, argMax(company_name, age) AS company_name, argMax(sector, age) AS sector,
        max(scored_at) AS last_at, argMax(score, age) AS newest,
        maxIf(scored_at, scored_at < now() - toIntervalDay(7)) AS at_7d, argMaxIf(score, age, scored_at < now() - toIntervalDay(7)) AS before_7d,
        maxIf(scored_at, scored_at < now() - toIntervalDay(30)) AS at_30d, argMaxIf(score, age, scored_at < now() - toIntervalDay(30)) AS before_30d,
        maxIf(scored_at, scored_at < now() - toIntervalDay(90)) AS at_90d, argMaxIf(score, age, scored_at < now() - toIntervalDay(90)) AS before_90d
    FROM score_history
    WHERE pipeline_version = (SELECT argMax(version, number) FROM pipeline_version)
    GROUP BY domain
    SETTINGS optimize_aggregation_in_order = 1
)
ARRAY JOIN [(toUInt8(7), at_7d, before_7d), (toUInt8(30), at_30d, before_30d), (toUInt8(90), at_90d, before_90d)] AS side
WHERE toUnixTimestamp64Milli(side.2) > 0 AND last_at >= now() - toIntervalDay(side.1) AND bitShiftRight(newest, 23) != bitShiftRight(side.3, 23)
COMMENT 'Companies whose score changed within 7, 30 or 90 days. One row per company and window.';
