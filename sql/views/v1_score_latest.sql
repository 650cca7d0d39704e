-- Newest score of each company under the current pipeline version. Companies whose scores are all of older versions are not
-- here, as they cannot be compared with the others. Nothing in it is sorted or grouped, so that a condition on the domain
-- reads a few hundred rows.
CREATE OR REPLACE VIEW v1_score_latest
(
    `domain` String COMMENT 'Canonical host name of the company: lower case, punycode, no www.',
    `pipeline_version` LowCardinality(String) COMMENT 'Generation of the formulas; the current one in all rows',
    `scored_at` DateTime64(3, 'UTC') COMMENT 'When the run began',
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
    `confidence` Enum8('directional' = 1, 'low' = 2, 'medium' = 3, 'high' = 4) COMMENT 'How far the score rests on data; sorts from least to most trustworthy',
    `run_id` String COMMENT 'Run that made the record, as in v1_run; empty for generated data'
)
AS SELECT
    domain, pipeline_version, scored_at, company_name, country, sector, geo_scope, profile, rating, composite, base, scale_premium, team_structure, market_position, momentum_tailwinds, financial_health, momentum_index, completeness_pct, confidence, run_id
FROM score_latest FINAL
WHERE pipeline_version = (SELECT argMax(version, number) FROM pipeline_version)
COMMENT 'Newest score of each company under the current pipeline version. One row per company; sorted by domain, so a condition on it is fast.';
