-- The signals of the current pipeline version, as scoring/signals.csv has them.
CREATE OR REPLACE VIEW {public:Identifier}.v1_signal_definition
(
    `position` UInt8 COMMENT 'Place in the list of signals, from 1; signals of a bucket stand together',
    `signal` String COMMENT 'Id of the signal, as in GET /v1/signals and v1_signal',
    `bucket` LowCardinality(String) COMMENT 'Bucket of the signal',
    `name` String COMMENT 'Name for people',
    `unit` String COMMENT 'Unit of raw values',
    `direction` LowCardinality(String) COMMENT 'Which raw values are better: higher or lower',
    `weight_in_bucket` Float64 COMMENT 'Share in the score of the bucket if all its signals apply; the weights of a bucket sum to 1',
    `weight` Float64 COMMENT 'Share in base if all signals of the bucket apply; the weights of all signals sum to 1',
    `raw_p10` Nullable(Float64) COMMENT 'Raw value that scores 20: nine tenths of the population do better; NULL for yes or no',
    `raw_p50` Nullable(Float64) COMMENT 'Raw value that scores 50: the median of the population; NULL for yes or no',
    `raw_p90` Nullable(Float64) COMMENT 'Raw value that scores 80: one tenth of the population does better; NULL for yes or no',
    `absent_score` Nullable(Float64) COMMENT 'Score of an absence, 0 to 100; NULL if an absence counts as missing',
    `population` String COMMENT 'Reference population, whose median scores 50',
    `basis` String COMMENT 'Where the quantiles of the population come from; judgement if no figure is published',
    `curve` String COMMENT 'Rule from raw value to score, as docs/score.md explains it',
    `sources` Array(String) COMMENT 'Sources of the signal, most trusted first',
    `not_for` Array(String) COMMENT 'Companies to which the signal does not apply: sectors, listed or unlisted',
    `max_age_days` UInt16 COMMENT 'Age until which an observation is carried forward while its source has no news'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    position, signal, bucket, name, unit, direction, weight_in_bucket, weight, raw_p10, raw_p50, raw_p90, absent_score,
    population, basis, curve, sources, not_for, max_age_days
FROM signal_definition FINAL
WHERE pipeline_version = (SELECT argMax(version, number) FROM pipeline_version)
COMMENT 'The 67 signals of the current pipeline version. One row per signal.';
