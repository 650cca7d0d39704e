-- Sorts universe_record by company alone. With weeks first, as it was, the records of one company lie apart, and grouping
-- them by company waits for memory at each of them; docs/adr/0009 has the numbers.
DROP TABLE IF EXISTS universe_record_feed;
DROP TABLE IF EXISTS universe_record;

-- Numbers that statistics of all companies need of every record; 008 says why the table is as it is.
CREATE TABLE IF NOT EXISTS universe_record
(
    pipeline_version LowCardinality(String) COMMENT 'Generation of the formulas',
    company UInt64 COMMENT 'cityHash64 of the domain' CODEC(LZ4),
    scored_at DateTime64(3, 'UTC') COMMENT 'When the run began' CODEC(LZ4),
    written_at DateTime64(3, 'UTC') COMMENT 'When the record was written; of rows with one company and scored_at the latest counts' CODEC(LZ4),
    cohort UInt64 COMMENT 'cityHash64 of sector, geo scope and profile: the group of peers' CODEC(LZ4),
    composite UInt16 COMMENT 'The score in hundredths, 0 to 10000' CODEC(LZ4),
    scale_premium UInt16 COMMENT 'Premium in hundredths, 0 to 1200' CODEC(LZ4),
    team_structure UInt16 COMMENT 'Bucket score in hundredths, 0 to 10000' CODEC(LZ4),
    market_position UInt16 COMMENT 'Bucket score in hundredths, 0 to 10000' CODEC(LZ4),
    momentum_tailwinds UInt16 COMMENT 'Bucket score in hundredths, 0 to 10000' CODEC(LZ4),
    financial_health UInt16 COMMENT 'Bucket score in hundredths, 0 to 10000' CODEC(LZ4),
    sector LowCardinality(String) COMMENT 'Sector the company was assigned to',
    geo_scope LowCardinality(String) COMMENT 'How far its business reaches',
    profile Enum8('unclassified' = 0, 'growth' = 1, 'established' = 2) COMMENT 'Business profile',
    domain String COMMENT 'Canonical host name of the company' CODEC(LZ4),
    company_name String COMMENT 'Best name found' CODEC(LZ4)
)
ENGINE = MergeTree
PARTITION BY pipeline_version
ORDER BY (company, scored_at, written_at)
SETTINGS enable_block_number_column = 1, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Records as statistics see them. Private: query v1_score_history.';

CREATE MATERIALIZED VIEW IF NOT EXISTS universe_record_feed TO universe_record
AS SELECT
    pipeline_version, cityHash64(domain) AS company, scored_at, written_at, cityHash64(sector, geo_scope, toString(profile)) AS cohort,
    toUInt16(round(composite * 100)) AS composite, toUInt16(round(scale_premium * 100)) AS scale_premium,
    toUInt16(round(team_structure * 100)) AS team_structure, toUInt16(round(market_position * 100)) AS market_position,
    toUInt16(round(momentum_tailwinds * 100)) AS momentum_tailwinds, toUInt16(round(financial_health * 100)) AS financial_health,
    sector, geo_scope, profile, domain, company_name
FROM score_history;

-- Records from before this table. A record that comes in meanwhile, or a second try, makes a second row of a record, which counts once.
INSERT INTO universe_record
SELECT
    pipeline_version, cityHash64(domain), scored_at, written_at, cityHash64(sector, geo_scope, toString(profile)),
    toUInt16(round(score_history.composite * 100)), toUInt16(round(score_history.scale_premium * 100)),
    toUInt16(round(score_history.team_structure * 100)), toUInt16(round(score_history.market_position * 100)),
    toUInt16(round(score_history.momentum_tailwinds * 100)), toUInt16(round(score_history.financial_health * 100)),
    sector, geo_scope, profile, domain, company_name
FROM score_history;

-- What columns of the tables before came to mean when the jobs were written.
ALTER TABLE universe_company COMMENT COLUMN position 'Batch that wrote the row: later batches have larger numbers. The first of a generation has its number';
ALTER TABLE universe_company COMMENT COLUMN sign '1: counted from this batch on. -1: no longer counted.';
ALTER TABLE batch_run COMMENT COLUMN job 'count (rank, distribution and cohorts), movers-7d, movers-30d, movers-90d or housekeeping';
ALTER TABLE batch_run COMMENT COLUMN coverage 'Share of the records stored at the end of the run that the result being served covers, 0 to 1';
ALTER TABLE batch_run COMMENT COLUMN read_rows 'Rows that the engine read while it ran, for anybody';
ALTER TABLE batch_run COMMENT COLUMN read_bytes 'Bytes that the engine read while it ran, for anybody';
ALTER TABLE batch_run COMMENT COLUMN peak_memory_bytes 'Most memory that the engine had in use while it ran, for anybody';
ALTER TABLE batch_run COMMENT COLUMN error 'Why it failed or is partial; empty when it did not';
