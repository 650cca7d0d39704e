-- The newest record of each company under each pipeline version, without its
-- signals: what a score read and all statistics of the universe need.
--
-- Filled by a materialized view, so a record is in both tables when its insert
-- is answered. The version of the engine is scored_at and not the moment of
-- writing: a late insert of an old record never hides a newer one.
-- One row per version and not per company alone: while a new version is being
-- rolled out, the universe of the old one stays whole.
-- Not partitioned: rows of one key must meet in one part to replace each other.
-- Granularity 256: a point read unpacks few neighbours, and the marks of ten
-- million rows are still small.
-- Blocks and packing: a read of one company unpacks one block of each column, so
-- blocks are 2 kB and not 64; a count reads all of them, and in blocks of 2 kB ZSTD
-- would spend nearly all its time on preparing its tables, hence LZ4. docs/adr/0009
-- has the numbers.
-- Until parts merge a company can have several rows. Read v1_score_latest, or
-- take the row with the largest scored_at and then written_at.
CREATE TABLE IF NOT EXISTS score_latest
(
    domain String COMMENT 'Canonical host name of the company: lower case, punycode, no www.' CODEC(LZ4),
    pipeline_version LowCardinality(String) COMMENT 'Generation of the formulas; never compare scores of different versions',
    scored_at DateTime64(3, 'UTC') COMMENT 'When the run began; of rows with one key the latest counts' CODEC(Delta(8), LZ4),
    company_name String COMMENT 'Best name found; derived from the domain when no source knew one' CODEC(LZ4),
    country LowCardinality(String) COMMENT 'Seat, ISO 3166-1 alpha-2 in upper case; empty when unknown',
    sector LowCardinality(String) COMMENT 'Sector the company was assigned to',
    geo_scope LowCardinality(String) COMMENT 'How far its business reaches',
    profile Enum8('unclassified' = 0, 'growth' = 1, 'established' = 2) COMMENT 'Business profile; decides how much scale premium can be earned',
    rating Enum8('SVC-5' = 1, 'SVC-4' = 2, 'SVC-3' = 3, 'SVC-2' = 4, 'SVC-2+' = 5, 'SVC-1' = 6, 'SVC-1+' = 7) COMMENT 'Grade of the composite; sorts from lowest to highest grade',
    composite Float64 COMMENT 'The score, 0 to 100 in steps of 0.1, premium included' CODEC(LZ4),
    base Float64 COMMENT 'Weighted sum of the unrounded bucket scores, 0 to 100, premium not included' CODEC(LZ4),
    scale_premium Float64 COMMENT 'Points added for proven scale, 0 to 12 in steps of 0.1; part of composite' CODEC(LZ4),
    team_structure Float64 COMMENT 'Bucket score, 0 to 100 in steps of 0.1' CODEC(LZ4),
    market_position Float64 COMMENT 'Bucket score, 0 to 100 in steps of 0.1' CODEC(LZ4),
    momentum_tailwinds Float64 COMMENT 'Bucket score, 0 to 100 in steps of 0.1' CODEC(LZ4),
    financial_health Float64 COMMENT 'Bucket score, 0 to 100 in steps of 0.1' CODEC(LZ4),
    momentum_index Float64 COMMENT 'Direction against the record of a month before, 0 to 100; 50 is no change' CODEC(LZ4),
    completeness_pct Float64 COMMENT 'Weighted share of the signals that rest on data, 0 to 100' CODEC(LZ4),
    confidence Enum8('directional' = 1, 'low' = 2, 'medium' = 3, 'high' = 4) COMMENT 'How far the score rests on data; sorts from least to most trustworthy',
    run_id String COMMENT 'Run that made the record; empty for generated data' CODEC(LZ4),
    written_at DateTime64(3, 'UTC') COMMENT 'When the row was written' CODEC(Delta(8), LZ4)
)
ENGINE = ReplacingMergeTree(scored_at)
ORDER BY (domain, pipeline_version)
SETTINGS index_granularity = 256, min_compress_block_size = 2048, max_compress_block_size = 131072, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Newest score per company and pipeline version, without signals. Private: query v1_score_latest.';

CREATE MATERIALIZED VIEW IF NOT EXISTS score_latest_feed TO score_latest
AS SELECT
    domain, pipeline_version, scored_at, company_name, country, sector, geo_scope, profile, rating,
    composite, base, scale_premium, team_structure, market_position, momentum_tailwinds, financial_health,
    momentum_index, completeness_pct, confidence, run_id, written_at
FROM score_history;
