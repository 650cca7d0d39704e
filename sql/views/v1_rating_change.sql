-- Pairs of successive records of a company with different grades. The records of a company are read as parallel arrays, sorted by time, one
-- company at a time: only the columns that a statement names, and a condition on domain is fast.
-- A repeated write of a record has its time, and is no record of its own.
CREATE OR REPLACE VIEW {public:Identifier}.v1_rating_change
(
    `domain` String COMMENT 'Canonical host name of the company',
    `pipeline_version` LowCardinality(String) COMMENT 'Version of the formulas of both records',
    `scored_at` DateTime64(3, 'UTC') COMMENT 'Start of the run of the later record',
    `scored_at_before` DateTime64(3, 'UTC') COMMENT 'Start of the run of the earlier record; there is none between the two',
    `direction` Enum8('down' = -1, 'up' = 1) COMMENT 'up: the later grade is better',
    `rating` Enum8('SVC-5' = 1, 'SVC-4' = 2, 'SVC-3' = 3, 'SVC-2' = 4, 'SVC-2+' = 5, 'SVC-1' = 6, 'SVC-1+' = 7) COMMENT 'Grade of the later record; sorts from lowest to highest grade',
    `rating_before` Enum8('SVC-5' = 1, 'SVC-4' = 2, 'SVC-3' = 3, 'SVC-2' = 4, 'SVC-2+' = 5, 'SVC-1' = 6, 'SVC-1+' = 7) COMMENT 'Grade of the earlier record, never that of the later; sorts from lowest to highest grade',
    `rating_number` UInt8 COMMENT 'rating as a number, 1 for SVC-5 to 7 for SVC-1+',
    `rating_number_before` UInt8 COMMENT 'rating_before as a number, 1 for SVC-5 to 7 for SVC-1+',
    `composite` Float64 COMMENT 'Composite of the later record',
    `composite_before` Float64 COMMENT 'Composite of the earlier record',
    `completeness_pct` Float64 COMMENT 'Completeness of the later record, in percent',
    `completeness_pct_before` Float64 COMMENT 'Completeness of the earlier record, in percent',
    `confidence` Enum8('directional' = 1, 'low' = 2, 'medium' = 3, 'high' = 4) COMMENT 'Confidence of the later record; sorts from lowest to highest',
    `confidence_before` Enum8('directional' = 1, 'low' = 2, 'medium' = 3, 'high' = 4) COMMENT 'Confidence of the earlier record; sorts from lowest to highest'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    domain, pipeline_version, at_after AS scored_at, at_before AS scored_at_before,
    CAST(if(rating_after > rating_first, 1, -1), 'Enum8(\'down\' = -1, \'up\' = 1)') AS direction, rating_after AS rating, rating_first AS rating_before,
    toUInt8(rating_after) AS rating_number, toUInt8(rating_first) AS rating_number_before,
    composite_after AS composite, composite_first AS composite_before, completeness_after AS completeness_pct, completeness_first AS completeness_pct_before,
    confidence_after AS confidence, confidence_first AS confidence_before
FROM
(
    WITH groupArray(bitShiftLeft(toUInt128(toUnixTimestamp64Milli(scored_at)), 64) + toUnixTimestamp64Milli(written_at)) AS ages
    SELECT
        domain, pipeline_version,
        arraySort((value, age) -> age, groupArray(scored_at), ages) AS at,
        arraySort((value, age) -> age, groupArray(rating), ages) AS ratings,
        arraySort((value, age) -> age, groupArray(composite), ages) AS composites,
        arraySort((value, age) -> age, groupArray(completeness_pct), ages) AS completeness,
        arraySort((value, age) -> age, groupArray(confidence), ages) AS confidences
    FROM score_history
    GROUP BY domain, pipeline_version
    SETTINGS optimize_aggregation_in_order = 1
)
ARRAY JOIN
    arrayPopBack(at) AS at_before, arrayPopFront(at) AS at_after, arrayPopBack(ratings) AS rating_first, arrayPopFront(ratings) AS rating_after,
    arrayPopBack(composites) AS composite_first, arrayPopFront(composites) AS composite_after,
    arrayPopBack(completeness) AS completeness_first, arrayPopFront(completeness) AS completeness_after,
    arrayPopBack(confidences) AS confidence_first, arrayPopFront(confidences) AS confidence_after
WHERE rating_first != rating_after AND at_before != at_after
COMMENT 'Crossings of the line between two grades by successive records of a company. One row per crossing; a condition on domain is fast.';
