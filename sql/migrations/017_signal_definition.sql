-- The signals of each pipeline version. `companyscore migrate` writes those of its program, from scoring/signals.csv.
CREATE TABLE IF NOT EXISTS signal_definition
(
    pipeline_version LowCardinality(String) COMMENT 'Version of the formulas',
    position UInt8 COMMENT 'Place in the manifest, from 1',
    signal String COMMENT 'Id of the signal, as in GET /v1/signals and v1_signal',
    bucket LowCardinality(String) COMMENT 'Bucket of the signal',
    name String COMMENT 'Name for people',
    unit String COMMENT 'Unit of raw values',
    direction LowCardinality(String) COMMENT 'Which raw values are better: higher or lower',
    weight_in_bucket Float64 COMMENT 'Share in the score of the bucket if all its signals apply',
    weight Float64 COMMENT 'Share in base if all signals of the bucket apply',
    raw_p10 Nullable(Float64) COMMENT 'Raw value that scores 20; NULL for yes or no',
    raw_p50 Nullable(Float64) COMMENT 'Raw value that scores 50; NULL for yes or no',
    raw_p90 Nullable(Float64) COMMENT 'Raw value that scores 80; NULL for yes or no',
    absent_score Nullable(Float64) COMMENT 'Score of an absence; NULL if an absence counts as missing',
    population String COMMENT 'Reference population, whose median scores 50',
    basis String COMMENT 'Where the quantiles of the population come from',
    curve String COMMENT 'Rule from raw value to score',
    sources Array(String) COMMENT 'Sources of the signal, most trusted first',
    not_for Array(String) COMMENT 'Companies to which the signal does not apply',
    max_age_days UInt16 COMMENT 'Age until which an observation is carried forward',
    written_at DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'Time of the write; of rows with one key the latest counts'
)
ENGINE = ReplacingMergeTree(written_at)
ORDER BY (pipeline_version, signal)
COMMENT 'Signals of each pipeline version. Private: query v1_signal_definition.';
