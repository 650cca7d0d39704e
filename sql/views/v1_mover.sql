-- Each company that has a record before a window, with its newest record and the last one before the window. Windows end now.
-- The values of a company are read as parallel arrays, and the two records are positions in them: ClickHouse reads only the columns
-- that a statement names, and a condition on domain is fast. The arrays of all companies are in memory at once, 600 to 900 bytes for
-- a company with five records. Grouping in the order of the table (optimize_aggregation_in_order) would avoid that, but ClickHouse
-- takes the setting from the statement and not from a view.
-- observation_delta and coverage_delta read all signals: 6 s for 300,000 companies with 900,000 records, where delta alone takes 0.3 s.
-- Of unmerged copies of a record the one that was written last counts. The split is that of scoring.Attribute.
CREATE OR REPLACE VIEW {public:Identifier}.v1_mover
(
    `domain` String COMMENT 'Canonical host name of the company',
    `window_days` UInt8 COMMENT 'Length of the window: 7, 30 or 90 days until now',
    `company_name` String COMMENT 'Company name in the newest record',
    `sector` LowCardinality(String) COMMENT 'Sector in the newest record',
    `changed` Bool COMMENT 'Whether delta is not 0',
    `composite_now` Float64 COMMENT 'Newest composite',
    `composite_then` Float64 COMMENT 'Last composite before the window',
    `delta` Float64 COMMENT 'composite_now minus composite_then, in steps of 0.1; the sum of the four parts that follow',
    `observation_delta` Float64 COMMENT 'Part of delta due to signals that both records know: the company changed. Slow for all companies; use a condition on domain',
    `coverage_delta` Float64 COMMENT 'Part of delta due to signals that one record lacks or weighs otherwise: what is known changed. Slow for all companies; use a condition on domain',
    `premium_delta` Float64 COMMENT 'Part of delta that is the scale premium; all of delta if nothing else changed',
    `defunct_delta` Float64 COMMENT 'All of delta if the company is defunct in one of the records, otherwise 0',
    `rating_now` Enum8('SVC-5' = 1, 'SVC-4' = 2, 'SVC-3' = 3, 'SVC-2' = 4, 'SVC-2+' = 5, 'SVC-1' = 6, 'SVC-1+' = 7) COMMENT 'Newest grade; sorts from lowest to highest grade',
    `rating_then` Enum8('SVC-5' = 1, 'SVC-4' = 2, 'SVC-3' = 3, 'SVC-2' = 4, 'SVC-2+' = 5, 'SVC-1' = 6, 'SVC-1+' = 7) COMMENT 'Last grade before the window; sorts from lowest to highest grade',
    `rating_number_now` UInt8 COMMENT 'rating_now as a number, 1 for SVC-5 to 7 for SVC-1+',
    `rating_number_then` UInt8 COMMENT 'rating_then as a number, 1 for SVC-5 to 7 for SVC-1+',
    `completeness_pct_now` Float64 COMMENT 'Completeness of the newest record, in percent',
    `completeness_pct_then` Float64 COMMENT 'Completeness of the last record before the window, in percent',
    `confidence_now` Enum8('directional' = 1, 'low' = 2, 'medium' = 3, 'high' = 4) COMMENT 'Confidence of the newest record; sorts from lowest to highest',
    `confidence_then` Enum8('directional' = 1, 'low' = 2, 'medium' = 3, 'high' = 4) COMMENT 'Confidence of the last record before the window; sorts from lowest to highest',
    `scored_at_now` DateTime64(3, 'UTC') COMMENT 'scored_at of the newest record; scored_at_then if the company was not scored in the window',
    `scored_at_then` DateTime64(3, 'UTC') COMMENT 'scored_at of the last record before the window'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS WITH
    window.1 AS window_days, window.2 AS earlier,
    defunct[newest] != defunct[earlier] AS ended,
    base[newest] - base[earlier] AS base_delta,
    if
    (
        empty(share[newest]) OR empty(share[earlier]), base_delta,
        arraySum
        (
            (share_now, share_then, score_now, score_then, known_now, known_then) ->
                if(known_now AND known_then, (share_now + share_then) / 2 * (score_now - score_then), 0),
            share[newest], arrayResize(share[earlier], length(share[newest])),
            score[newest], arrayResize(score[earlier], length(share[newest])),
            known[newest], arrayResize(known[earlier], length(share[newest]))
        )
    ) AS observed
SELECT
    domain, window_days, company_name, sector, CAST(delta != 0, 'Bool') AS changed,
    composite_now, composites[earlier] AS composite_then, round(composite_now - composite_then, 1) AS delta,
    round(delta - coverage_delta - premium_delta - defunct_delta, 1) AS observation_delta,
    multiIf(ended OR base_delta = 0, 0, abs(observed) >= abs(base_delta - observed), round(base_delta - observed, 1), round(delta - premium_delta - round(observed, 1), 1)) AS coverage_delta,
    multiIf(ended, 0, base_delta = 0, delta, round(premium[newest] - premium[earlier], 1)) AS premium_delta,
    if(ended, delta, 0) AS defunct_delta,
    rating_now, ratings[earlier] AS rating_then, toUInt8(rating_now) AS rating_number_now, toUInt8(rating_then) AS rating_number_then,
    completeness_pct_now, completeness[earlier] AS completeness_pct_then, confidence_now, confidences[earlier] AS confidence_then,
    scored_at_now, at[earlier] AS scored_at_then
FROM
(
    WITH arrayMap(days -> (days, bitShiftLeft(toUInt128(toUnixTimestamp64Milli(now64(3) - toIntervalDay(days))), 64)), [toUInt8(7), toUInt8(30), toUInt8(90)]) AS starts
    SELECT
        *, indexOf(ages, arrayMax(ages)) AS newest,
        arrayMap(start -> (start.1, indexOf(ages, arrayMax(age -> if(age < start.2, age, 0), ages))), starts) AS windows,
        company_names[newest] AS company_name, sectors[newest] AS sector, composites[newest] AS composite_now, ratings[newest] AS rating_now,
        completeness[newest] AS completeness_pct_now, confidences[newest] AS confidence_now, at[newest] AS scored_at_now
    FROM
    (
        SELECT
            domain, groupArray(bitShiftLeft(toUInt128(toUnixTimestamp64Milli(scored_at)), 64) + toUnixTimestamp64Milli(written_at)) AS ages,
            groupArray(scored_at) AS at, groupArray(company_name) AS company_names, groupArray(sector) AS sectors, groupArray(composite) AS composites,
            groupArray(base) AS base, groupArray(scale_premium) AS premium, groupArray(rating) AS ratings,
            groupArray(completeness_pct) AS completeness, groupArray(confidence) AS confidences, groupArray(has(`warning.code`, 'defunct')) AS defunct,
            groupArray(`signal.share`) AS share, groupArray(`signal.score`) AS score, groupArray(arrayMap(state -> state IN ('ok', 'absent'), `signal.state`)) AS known
        FROM score_history
        WHERE pipeline_version = (SELECT argMax(version, number) FROM pipeline_version)
        GROUP BY domain
    )
)
ARRAY JOIN windows AS window
WHERE earlier > 0
COMMENT 'Companies at the start and the end of the last 7, 30 and 90 days, changed or not. One row per company and window.';
