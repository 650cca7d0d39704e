-- name: seed_phase_table
-- Creates the table of scored companies from which a universe is generated. It exists during the generation.
CREATE TABLE IF NOT EXISTS seed_phase
(
    id UInt32 COMMENT 'Number of the phase in the cast',
    pipeline_version LowCardinality(String) COMMENT 'As in score_history, as are all columns below unless noted',
    country LowCardinality(String) COMMENT 'Country of the headquarters',
    sector LowCardinality(String) COMMENT 'Sector',
    geo_scope LowCardinality(String) COMMENT 'Reach',
    profile Enum8('unclassified' = 0, 'growth' = 1, 'established' = 2) COMMENT 'Profile',
    rating Enum8('SVC-5' = 1, 'SVC-4' = 2, 'SVC-3' = 3, 'SVC-2' = 4, 'SVC-2+' = 5, 'SVC-1' = 6, 'SVC-1+' = 7) COMMENT 'Grade',
    composite Float64 COMMENT 'Score',
    interval_low Float64 COMMENT 'Lower end of the likely range of the score',
    interval_high Float64 COMMENT 'Upper end of that range',
    expected_composite Float64 COMMENT 'Expected score',
    base Float64 COMMENT 'Score without premium',
    scale_premium Float64 COMMENT 'Premium',
    team_structure Float64 COMMENT 'Bucket score',
    market_position Float64 COMMENT 'Bucket score',
    momentum_tailwinds Float64 COMMENT 'Bucket score',
    financial_health Float64 COMMENT 'Bucket score',
    momentum_index Float64 COMMENT 'Momentum index of a first record',
    momentum_before Float64 COMMENT 'Momentum index of a record after one of the previous phase',
    momentum_after Float64 COMMENT 'Momentum index of a record after one of the next phase',
    completeness_pct Float64 COMMENT 'Completeness',
    team_structure_completeness_pct Float64 COMMENT 'Completeness of the bucket',
    market_position_completeness_pct Float64 COMMENT 'Completeness of the bucket',
    momentum_tailwinds_completeness_pct Float64 COMMENT 'Completeness of the bucket',
    financial_health_completeness_pct Float64 COMMENT 'Completeness of the bucket',
    confidence Enum8('directional' = 1, 'low' = 2, 'medium' = 3, 'high' = 4) COMMENT 'Confidence',
    `signal.id` Array(LowCardinality(String)) COMMENT 'Signals',
    `signal.state` Array(Enum8('ok' = 1, 'absent' = 2, 'missing' = 3, 'not_applicable' = 4)) COMMENT 'Signals',
    `signal.raw` Array(Float64) COMMENT 'Signals',
    `signal.score` Array(Float64) COMMENT 'Signals',
    `signal.source` Array(LowCardinality(String)) COMMENT 'Signals',
    `signal.reason` Array(LowCardinality(String)) COMMENT 'Signals',
    `signal.share` Array(Float64) COMMENT 'Signals',
    `warning.source` Array(LowCardinality(String)) COMMENT 'Warnings',
    `warning.code` Array(LowCardinality(String)) COMMENT 'Warnings'
)
ENGINE = ReplacingMergeTree
ORDER BY id
COMMENT 'Scored companies from which a universe is generated. Exists during the generation.'
