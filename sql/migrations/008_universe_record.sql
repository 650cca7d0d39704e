-- What statistics of all companies need of every record, in numbers: a fifth of the bytes of score_history without its
-- signals, and nothing that has to be compared as text.
--
-- Filled by a materialized view in the insert of the record. Rows only ever come: a record that is written again is a second
-- row here, so that what was counted up to a moment can be told for good. Of rows with one company and scored_at the
-- latest written_at counts.
-- Rows carry the number of the insert that brought them (_block_number), which is given out at the instant a part can be seen.
-- Records up to a block are therefore the same set for every reader, and "since the last batch" is exact, which no clock is.
-- Sort key: weeks first, so that the records over which the start of a window has moved are a short range of each week;
-- within a week by company, as that is how they are grouped.
-- Partitions: by pipeline version, as nothing is ever counted across versions.
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
ORDER BY (toMonday(scored_at), company, scored_at, written_at)
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
