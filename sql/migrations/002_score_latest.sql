-- The newest record of each company and pipeline version, with its signals. Reads of
-- scores and all statistics use it. A statement that reads a signal of all companies
-- reads one row per company, whatever the length of the history, and needs no join;
-- docs/adr/0020 has the figures.
--
-- A materialized view fills it, so a record is in both tables when its insert is
-- answered. The engine's version is scored_at and not the time of the write: a
-- late insert of an old record does not replace a newer one.
-- Key: one row per pipeline version and company. While a new version is rolled
-- out, the universe of the old one stays complete.
-- Not partitioned: rows of one key replace each other only within a partition.
-- Granularity: 256 rows. A point read unpacks few other rows, and the marks of ten
-- million rows are still small.
-- Block size and codecs: a read of one company unpacks one block per column, so
-- blocks have 2 kB and not 64 kB. A count reads all blocks. With blocks of 2 kB ZSTD
-- spends nearly all its time on its tables, so columns use LZ4; docs/adr/0009 has
-- the figures. A granule has 17 kB to 137 kB in each signal column, so these use ZSTD.
-- Until parts merge, a company can have several rows. Read v1_score_latest, or
-- take the row with the largest scored_at and then written_at.
CREATE TABLE IF NOT EXISTS score_latest
(
    domain String COMMENT 'Canonical host name of the company: lower case, punycode, no www.' CODEC(LZ4),
    pipeline_version LowCardinality(String) COMMENT 'Version of the formulas; scores of different versions are not comparable',
    scored_at DateTime64(3, 'UTC') COMMENT 'Start of the run; of rows with one key the latest counts' CODEC(Delta(8), LZ4),
    company_name String COMMENT 'Company name of the most trusted source; derived from the domain when none has one' CODEC(LZ4),
    country LowCardinality(String) COMMENT 'Country of the headquarters, ISO 3166-1 alpha-2 in upper case, or EU; empty when unknown',
    sector LowCardinality(String) COMMENT 'Sector of the company',
    geo_scope LowCardinality(String) COMMENT 'Reach of the company: global, north_america, europe, asia_pacific, latin_america, middle_east_africa or unknown',
    profile Enum8('unclassified' = 0, 'growth' = 1, 'established' = 2) COMMENT 'Business profile, by size, listing, age and signs of growth; a label on which no point depends',
    rating Enum8('SVC-5' = 1, 'SVC-4' = 2, 'SVC-3' = 3, 'SVC-2' = 4, 'SVC-2+' = 5, 'SVC-1' = 6, 'SVC-1+' = 7) COMMENT 'Grade of the composite; sorts from lowest to highest grade',
    composite Float64 COMMENT 'The score, 0 to 100 in steps of 0.1, premium included' CODEC(LZ4),
    interval_low Float64 COMMENT 'Lower end of the range that holds the composite with a probability of 90 % if all signals were known, 0 to 100 in steps of 0.1' CODEC(LZ4),
    interval_high Float64 COMMENT 'Upper end of that range; interval_low <= composite <= interval_high' CODEC(LZ4),
    expected_composite Float64 COMMENT 'Composite with the mean of the cohort in the place of missing signals, 0 to 100 in steps of 0.1' CODEC(LZ4),
    base Float64 COMMENT 'Weighted sum of the unrounded bucket scores, 0 to 100, premium not included' CODEC(LZ4),
    scale_premium Float64 COMMENT 'Points added for scale, 0 to 12 in steps of 0.1; part of composite' CODEC(LZ4),
    team_structure Float64 COMMENT 'Bucket score, 0 to 100 in steps of 0.1' CODEC(LZ4),
    market_position Float64 COMMENT 'Bucket score, 0 to 100 in steps of 0.1' CODEC(LZ4),
    momentum_tailwinds Float64 COMMENT 'Bucket score, 0 to 100 in steps of 0.1' CODEC(LZ4),
    financial_health Float64 COMMENT 'Bucket score, 0 to 100 in steps of 0.1' CODEC(LZ4),
    momentum_index Float64 COMMENT 'Momentum bucket plus half of the change of base since the record nearest to 30 days before, of 20 to 120; at most 10 points; the bucket itself without such a record' CODEC(LZ4),
    completeness_pct Float64 COMMENT 'Weighted share of the applicable signals that are not missing, in percent' CODEC(LZ4),
    confidence Enum8('directional' = 1, 'low' = 2, 'medium' = 3, 'high' = 4) COMMENT 'How much of the score rests on data; sorts from lowest to highest',
    `signal.id` Array(LowCardinality(String)) COMMENT 'Signal ids in manifest order; the other signal columns are parallel arrays' CODEC(ZSTD(1)),
    `signal.state` Array(Enum8('ok' = 1, 'absent' = 2, 'missing' = 3, 'not_applicable' = 4)) COMMENT 'ok: observed. absent: the sources report that there is none. missing: no value. not_applicable: the signal means nothing for the company' CODEC(ZSTD(1)),
    `signal.raw` Array(Float64) COMMENT 'Value in the unit of the signal; 0 unless ok' CODEC(ZSTD(1)),
    `signal.score` Array(Float64) COMMENT 'Normalised value, 0 to 100; exactly 50 when missing or not applicable' CODEC(ZSTD(1)),
    `signal.share` Array(Float64) COMMENT 'Share of the signal in base, 0 to 1; 0 if not applicable' CODEC(ZSTD(1)),
    `signal.source` Array(LowCardinality(String)) COMMENT 'Source whose value was used; when missing, the source that was asked or is switched off, or empty' CODEC(ZSTD(1)),
    `signal.origin` Array(LowCardinality(String)) COMMENT 'Origin of the imported facts whose value was used; empty for other sources' CODEC(ZSTD(1)),
    run_id String COMMENT 'Run that wrote the record; empty for generated data' CODEC(LZ4),
    written_at DateTime64(3, 'UTC') COMMENT 'Time of the write' CODEC(Delta(8), LZ4)
)
ENGINE = ReplacingMergeTree(scored_at)
ORDER BY (domain, pipeline_version)
SETTINGS index_granularity = 256, min_compress_block_size = 2048, max_compress_block_size = 131072, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Newest record per company and pipeline version, with its signals. Private: query v1_score_latest and v1_signal_latest.';

CREATE MATERIALIZED VIEW IF NOT EXISTS score_latest_feed TO score_latest
AS SELECT
    domain, pipeline_version, scored_at, company_name, country, sector, geo_scope, profile, rating,
    composite, interval_low, interval_high, expected_composite, base, scale_premium, team_structure, market_position, momentum_tailwinds, financial_health,
    momentum_index, completeness_pct, confidence,
    `signal.id`, `signal.state`, `signal.raw`, `signal.score`, `signal.share`, `signal.source`, `signal.origin`,
    run_id, written_at
FROM score_history;
