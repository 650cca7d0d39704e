-- Distribution of all companies. Empty bins have a row too.
CREATE OR REPLACE VIEW {public:Identifier}.v1_distribution
(
    `pipeline_version` LowCardinality(String) COMMENT 'Version of the formulas; the current one in all rows',
    `measure` String COMMENT 'What is counted: composite, scale_premium, rating or profile',
    `label` String COMMENT 'Name of the bin as in GET /v1/distribution, such as 45-50, SVC-3 or growth',
    `rating_number` Nullable(UInt8) COMMENT 'Grade as a number, 1 for SVC-5 to 7 for SVC-1+; NULL for other measures',
    `lower` Nullable(Float64) COMMENT 'Inclusive lower bound; NULL for rating and profile',
    `upper` Nullable(Float64) COMMENT 'Upper bound, exclusive except in the last bin; NULL for rating and profile',
    `companies` UInt64 COMMENT 'Number of companies in the bin',
    `share` Float64 COMMENT 'Share of all companies, 0 to 1; 0 without companies'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS WITH
    assumeNotNull((SELECT argMax(version, number) FROM pipeline_version)) AS current,
    arrayMap(i -> ('composite', concat(toString(i * 5), '-', toString(i * 5 + 5)), toNullable(toFloat64(i * 5)), toNullable(toFloat64(i * 5 + 5)), toUInt8(i)), range(20)) AS composite_bins,
    arrayMap(i -> ('scale_premium', concat(toString(i), '-', toString(i + 1)), toNullable(toFloat64(i)), toNullable(toFloat64(i + 1)), toUInt8(i)), range(12)) AS premium_bins,
    arrayMap((r, i) -> ('rating', r, CAST(NULL, 'Nullable(Float64)'), CAST(NULL, 'Nullable(Float64)'), toUInt8(i)), ['SVC-5', 'SVC-4', 'SVC-3', 'SVC-2', 'SVC-2+', 'SVC-1', 'SVC-1+'], range(1, 8)) AS rating_bins,
    arrayMap((p, i) -> ('profile', p, CAST(NULL, 'Nullable(Float64)'), CAST(NULL, 'Nullable(Float64)'), toUInt8(i)), ['unclassified', 'growth', 'established'], range(3)) AS profile_bins
SELECT
    current AS pipeline_version, bin.1 AS measure, bin.2 AS label, if(measure = 'rating', toNullable(bin.5), NULL) AS rating_number, bin.3 AS lower, bin.4 AS upper,
    multiIf(measure = 'composite', counts.1, measure = 'scale_premium', counts.2, measure = 'rating', counts.3, counts.4) AS map,
    map[bin.5] AS companies,
    if(counts.5 = 0, 0, companies / counts.5) AS share
FROM
(
    SELECT
    (
        sumMap(map(toUInt8(least(intDiv(toUInt32(round(composite * 10)), 50), 19)), toUInt64(1))),
        sumMap(map(toUInt8(least(intDiv(toUInt32(round(scale_premium * 10)), 10), 11)), toUInt64(1))),
        sumMap(map(toUInt8(rating), toUInt64(1))),
        sumMap(map(toUInt8(profile), toUInt64(1))),
        count()
    ) AS counts
    FROM score_latest FINAL
    WHERE pipeline_version = (SELECT argMax(version, number) FROM pipeline_version)
)
ARRAY JOIN arrayConcat(composite_bins, premium_bins, rating_bins, profile_bins) AS bin
COMMENT 'Distribution of companies over composite, premium, rating and profile. One row per measure and bin.';
