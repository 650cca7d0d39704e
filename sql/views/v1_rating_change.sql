-- Pairs of successive records of a company with different grades. The records of a company are read as parallel arrays, and a pair is two
-- positions in them: ClickHouse reads only the columns that a statement names, and a condition on domain is fast.
-- Copies of a record are in one partition, so FINAL has nothing to do for a partition of one part; the setting tells ClickHouse so.
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
    domain, pipeline_version, at[after] AS scored_at, at[before] AS scored_at_before,
    CAST(if(rating > rating_before, 1, -1), 'Enum8(\'down\' = -1, \'up\' = 1)') AS direction, ratings[after] AS rating, ratings[before] AS rating_before,
    toUInt8(rating) AS rating_number, toUInt8(rating_before) AS rating_number_before, composites[after] AS composite, composites[before] AS composite_before,
    completeness[after] AS completeness_pct, completeness[before] AS completeness_pct_before, confidences[after] AS confidence, confidences[before] AS confidence_before
FROM
(
    SELECT
        domain, pipeline_version, groupArray(scored_at) AS at, groupArray(rating) AS ratings, groupArray(composite) AS composites,
        groupArray(completeness_pct) AS completeness, groupArray(confidence) AS confidences,
        arraySort((position, time) -> time, arrayEnumerate(at), at) AS order,
        arrayFilter(pair -> ratings[pair.1] != ratings[pair.2], arrayZip(arrayPopBack(order), arrayPopFront(order))) AS crossings
    FROM score_history FINAL
    GROUP BY domain, pipeline_version
    SETTINGS do_not_merge_across_partitions_select_final = 1
)
ARRAY JOIN crossings.1 AS before, crossings.2 AS after
COMMENT 'Crossings of the line between two grades by successive records of a company. One row per crossing; a condition on domain is fast.';
