-- All records, without copies that are not yet merged.
CREATE OR REPLACE VIEW {public:Identifier}.v1_score_history
(
    `domain` String COMMENT 'Canonical host name of the company: lower case, punycode, no www.',
    `scored_at` DateTime64(3, 'UTC') COMMENT 'Start of the run; with the domain it identifies the record',
    `pipeline_version` LowCardinality(String) COMMENT 'Version of the formulas; scores of different versions are not comparable',
    `run_id` String COMMENT 'Run that wrote the record, as in v1_run; empty for generated data',
    `company_name` String COMMENT 'Company name of the most trusted source; derived from the domain when none has one',
    `country` LowCardinality(String) COMMENT 'Country of the headquarters, ISO 3166-1 alpha-2 in upper case, EU or unknown',
    `sector` LowCardinality(String) COMMENT 'Sector of the company, or unknown',
    `geo_scope` LowCardinality(String) COMMENT 'Reach of the company: global, north_america, europe, asia_pacific, latin_america, middle_east_africa or unknown',
    `profile` Enum8('unclassified' = 0, 'growth' = 1, 'established' = 2) COMMENT 'Business profile, by size, listing, age and signs of growth; a label on which no point depends',
    `rating` Enum8('SVC-5' = 1, 'SVC-4' = 2, 'SVC-3' = 3, 'SVC-2' = 4, 'SVC-2+' = 5, 'SVC-1' = 6, 'SVC-1+' = 7) COMMENT 'Grade of the composite; sorts from lowest to highest grade',
    `rating_number` UInt8 COMMENT 'rating as a number, 1 for SVC-5 to 7 for SVC-1+',
    `composite` Float64 COMMENT 'The score, 0 to 100 in steps of 0.1, premium included',
    `interval_low` Float64 COMMENT 'Lower end of the range that holds the composite with a probability of 90 % if all signals were known, 0 to 100 in steps of 0.1',
    `interval_high` Float64 COMMENT 'Upper end of that range; interval_low <= composite <= interval_high',
    `expected_composite` Float64 COMMENT 'Composite with the mean of the cohort in the place of missing signals, 0 to 100 in steps of 0.1',
    `base` Float64 COMMENT 'Weighted sum of the unrounded bucket scores, 0 to 100, premium not included',
    `scale_premium` Float64 COMMENT 'Points added for scale, 0 to 12 in steps of 0.1; part of composite',
    `team_structure` Float64 COMMENT 'Bucket score, 0 to 100 in steps of 0.1',
    `market_position` Float64 COMMENT 'Bucket score, 0 to 100 in steps of 0.1',
    `momentum_tailwinds` Float64 COMMENT 'Bucket score, 0 to 100 in steps of 0.1',
    `financial_health` Float64 COMMENT 'Bucket score, 0 to 100 in steps of 0.1',
    `momentum_index` Float64 COMMENT 'Momentum bucket plus half of the change of base since the record nearest to 30 days before, of 20 to 120; at most 10 points; the bucket itself without such a record',
    `completeness_pct` Float64 COMMENT 'Weighted share of the applicable signals that are not missing, in percent',
    `has_data` Bool COMMENT 'Whether any of the score rests on data; without data the composite says nothing',
    `team_structure_completeness_pct` Float64 COMMENT 'The same share within the bucket, in percent',
    `market_position_completeness_pct` Float64 COMMENT 'The same share within the bucket, in percent',
    `momentum_tailwinds_completeness_pct` Float64 COMMENT 'The same share within the bucket, in percent',
    `financial_health_completeness_pct` Float64 COMMENT 'The same share within the bucket, in percent',
    `confidence` Enum8('directional' = 1, 'low' = 2, 'medium' = 3, 'high' = 4) COMMENT 'How much of the score rests on data; sorts from lowest to highest'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    domain, scored_at, pipeline_version, run_id, company_name, if(country = '', 'unknown', country) AS country, sector, geo_scope, profile, rating, toUInt8(rating) AS rating_number, composite, interval_low, interval_high, expected_composite, base, scale_premium, team_structure, market_position, momentum_tailwinds, financial_health, momentum_index, completeness_pct, completeness_pct > 0 AS has_data, team_structure_completeness_pct, market_position_completeness_pct, momentum_tailwinds_completeness_pct, financial_health_completeness_pct, confidence
FROM score_history FINAL
COMMENT 'All scores, without signals. One row per company, scored_at and pipeline version; a condition on domain is fast.';
