-- Every score ever made, each once.
CREATE OR REPLACE VIEW v1_score_history
(
    `domain` String COMMENT 'Canonical host name of the company: lower case, punycode, no www.',
    `scored_at` DateTime64(3, 'UTC') COMMENT 'When the run began; with the domain it identifies the record',
    `pipeline_version` LowCardinality(String) COMMENT 'Generation of the formulas; never compare scores of different versions',
    `run_id` String COMMENT 'Run that made the record, as in v1_run; empty for generated data',
    `company_name` String COMMENT 'Best name found; derived from the domain when no source knew one',
    `country` LowCardinality(String) COMMENT 'Seat, ISO 3166-1 alpha-2 in upper case; empty when unknown',
    `sector` LowCardinality(String) COMMENT 'Sector the company was assigned to',
    `geo_scope` LowCardinality(String) COMMENT 'How far its business reaches',
    `profile` Enum8('unclassified' = 0, 'growth' = 1, 'established' = 2) COMMENT 'Business profile; decides how much scale premium can be earned',
    `rating` Enum8('SVC-5' = 1, 'SVC-4' = 2, 'SVC-3' = 3, 'SVC-2' = 4, 'SVC-2+' = 5, 'SVC-1' = 6, 'SVC-1+' = 7) COMMENT 'Grade of the composite; sorts from lowest to highest grade',
    `composite` Float64 COMMENT 'The score, 0 to 100 in steps of 0.1, premium included',
    `base` Float64 COMMENT 'Weighted sum of the unrounded bucket scores, 0 to 100, premium not included',
    `scale_premium` Float64 COMMENT 'Points added for proven scale, 0 to 12 in steps of 0.1; part of composite',
    `team_structure` Float64 COMMENT 'Bucket score, 0 to 100 in steps of 0.1',
    `market_position` Float64 COMMENT 'Bucket score, 0 to 100 in steps of 0.1',
    `momentum_tailwinds` Float64 COMMENT 'Bucket score, 0 to 100 in steps of 0.1',
    `financial_health` Float64 COMMENT 'Bucket score, 0 to 100 in steps of 0.1',
    `momentum_index` Float64 COMMENT 'Direction against the record of a month before, 0 to 100; 50 is no change',
    `completeness_pct` Float64 COMMENT 'Weighted share of the signals that rest on data, 0 to 100',
    `team_structure_completeness_pct` Float64 COMMENT 'The same share within the bucket, 0 to 100',
    `market_position_completeness_pct` Float64 COMMENT 'The same share within the bucket, 0 to 100',
    `momentum_tailwinds_completeness_pct` Float64 COMMENT 'The same share within the bucket, 0 to 100',
    `financial_health_completeness_pct` Float64 COMMENT 'The same share within the bucket, 0 to 100',
    `confidence` Enum8('directional' = 1, 'low' = 2, 'medium' = 3, 'high' = 4) COMMENT 'How far the score rests on data; sorts from least to most trustworthy'
)
AS SELECT
    domain, scored_at, pipeline_version, run_id, company_name, country, sector, geo_scope, profile, rating, composite, base, scale_premium, team_structure, market_position, momentum_tailwinds, financial_health, momentum_index, completeness_pct, team_structure_completeness_pct, market_position_completeness_pct, momentum_tailwinds_completeness_pct, financial_health_completeness_pct, confidence
FROM score_history FINAL
COMMENT 'Every score ever made, without signals. One row per company, time of scoring and pipeline version; a condition on the domain is fast.';
