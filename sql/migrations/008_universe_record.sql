-- What statistics of all companies need of every record, in numbers: a fifth of the bytes of score_history without its
-- signals, and nothing that has to be compared as text.
--
-- Filled by a materialized view in the insert of the record. Rows only ever come: a record that is written again is a second
-- row here, so that what was counted up to a moment can be told for good. Of rows with one company and scored_at the
-- latest written_at counts.
-- A stamp orders the records of a company and carries the score: (scored_at in ms << 64) + (written_at in ms << 14) + composite
-- in hundredths. "The newest record, and its score" is then the largest of one column. What else is counted of the newest is
-- one number too: (cohort << 64) + (premium in whole points << 56) + the four bucket scores in hundredths, 14 bits each.
-- Grouping reads and compares these two; docs/adr/0009 has the numbers. Columns that are computed from them are for people.
-- To find the few records that the start of a window has passed all are looked at, in four bytes instead of sixteen.
-- Rows carry the number of the insert that brought them (_block_number), which is given out at the instant a part can be seen.
-- Records up to a block are therefore the same set for every reader, and "since the last batch" is exact, which no clock is.
-- Sort key: by company alone, as that is how they are grouped. With weeks first the records of one company lie apart, and
-- grouping them waits for memory at each of them. Granules and the blocks
-- they are compressed in are small, as single companies are looked up too.
-- Partitions: by pipeline version, as nothing is ever counted across versions.
CREATE TABLE IF NOT EXISTS universe_record
(
    pipeline_version LowCardinality(String) COMMENT 'Generation of the formulas',
    company UInt64 COMMENT 'cityHash64 of the domain' CODEC(LZ4),
    stamp UInt128 COMMENT 'scored_at, written_at and composite in one number that orders the records of a company' CODEC(LZ4),
    standing UInt128 COMMENT 'cohort, premium_bin and bucket scores in one number' CODEC(LZ4),
    scored_second DateTime('UTC') COMMENT 'scored_at in whole seconds' CODEC(LZ4),
    sector LowCardinality(String) COMMENT 'Sector the company was assigned to',
    geo_scope LowCardinality(String) COMMENT 'How far its business reaches',
    profile Enum8('unclassified' = 0, 'growth' = 1, 'established' = 2) COMMENT 'Business profile',
    domain String COMMENT 'Canonical host name of the company' CODEC(LZ4),
    company_name String COMMENT 'Best name found' CODEC(LZ4),
    scored_at DateTime64(3, 'UTC') ALIAS fromUnixTimestamp64Milli(toInt64(bitShiftRight(stamp, 64)), 'UTC') COMMENT 'When the run began',
    written_at DateTime64(3, 'UTC') ALIAS fromUnixTimestamp64Milli(toInt64(bitShiftRight(toUInt64(stamp), 14)), 'UTC') COMMENT 'When the record was written; of rows with one company and scored_at the latest counts',
    composite UInt16 ALIAS toUInt16(bitAnd(toUInt64(stamp), 16383)) COMMENT 'The score in hundredths, 0 to 10000',
    cohort UInt64 ALIAS toUInt64(bitShiftRight(standing, 64)) COMMENT 'cityHash64 of sector, geo scope and profile: the group of peers'
)
ENGINE = MergeTree
PARTITION BY pipeline_version
ORDER BY company
SETTINGS index_granularity = 1024, min_compress_block_size = 8192, enable_block_number_column = 1, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Records as statistics see them. Private: query v1_score_history.';

CREATE MATERIALIZED VIEW IF NOT EXISTS universe_record_feed TO universe_record
AS SELECT
    pipeline_version, cityHash64(domain) AS company,
    bitShiftLeft(toUInt128(toUnixTimestamp64Milli(scored_at)), 64) + bitShiftLeft(toUInt128(toUnixTimestamp64Milli(written_at)), 14)
        + toUInt16(round(score_history.composite * 100)) AS stamp,
    bitShiftLeft(toUInt128(cityHash64(sector, geo_scope, toString(profile))), 64)
        + bitShiftLeft(toUInt64(least(intDiv(toUInt16(round(scale_premium * 100)), 100), 11)), 56)
        + bitShiftLeft(toUInt64(round(team_structure * 100)), 42) + bitShiftLeft(toUInt64(round(market_position * 100)), 28)
        + bitShiftLeft(toUInt64(round(momentum_tailwinds * 100)), 14) + toUInt64(round(financial_health * 100)) AS standing,
    toDateTime(scored_at, 'UTC') AS scored_second, sector, geo_scope, profile, domain, company_name
FROM score_history;

-- Records from before this table. A record that comes in meanwhile, or a second try, makes a second row of a record, which counts once.
INSERT INTO universe_record (pipeline_version, company, stamp, standing, scored_second, sector, geo_scope, profile, domain, company_name)
SELECT
    pipeline_version, cityHash64(domain) AS company,
    bitShiftLeft(toUInt128(toUnixTimestamp64Milli(scored_at)), 64) + bitShiftLeft(toUInt128(toUnixTimestamp64Milli(written_at)), 14)
        + toUInt16(round(score_history.composite * 100)) AS stamp,
    bitShiftLeft(toUInt128(cityHash64(sector, geo_scope, toString(profile))), 64)
        + bitShiftLeft(toUInt64(least(intDiv(toUInt16(round(scale_premium * 100)), 100), 11)), 56)
        + bitShiftLeft(toUInt64(round(team_structure * 100)), 42) + bitShiftLeft(toUInt64(round(market_position * 100)), 28)
        + bitShiftLeft(toUInt64(round(momentum_tailwinds * 100)), 14) + toUInt64(round(financial_health * 100)) AS standing,
    toDateTime(scored_at, 'UTC') AS scored_second, sector, geo_scope, profile, domain, company_name
FROM score_history;
