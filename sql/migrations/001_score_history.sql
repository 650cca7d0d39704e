-- All scores, one row per record. Rows are never deleted.
--
-- Sort key: a history page reads one domain by falling time, which is one short
-- range. pipeline_version is last because a company that is rescored with new
-- formulas keeps both records.
-- Engine: a second write of a record (a repeated run, a repeated insert) has the
-- same key and a later written_at. It replaces the first when parts merge. Until
-- then both rows are visible: read v1_score_history, or use FINAL.
-- Signals are parallel arrays in the row. So a record is one atomic insert, and a
-- query that does not read them does not unpack them.
-- signal.share: the program computes it, so a statement can add contributions without
-- the weights and the rules of the version. It takes a tenth of a byte per signal on
-- disk, because most records of a sector have the same shares.
-- Partitions: one per year. A history page reads few parts. A query with a
-- condition on scored_at skips other years. An operator can move or back up one
-- year. There is no TTL.
-- Granularity: 512 rows. With the default of 8192 a point read unpacks the
-- signals of thousands of other rows; docs/adr/0003 has the figures.
-- Block size: ClickHouse writes files in pieces of the largest block, and Linux
-- may not preempt a thread within one write. With pieces of 1 MB other programs
-- waited up to 10 ms; docs/adr/0009 has the figures.
-- Codecs: the movers job reads domain, scored_at, composite and written_at of all
-- records, so these use LZ4. The table takes an eighth more disk, and the job
-- uses a quarter less CPU.
-- Durability: ClickHouse calls fsync before it answers an insert, so an
-- acknowledged record survives a power failure.
-- Constraints reject values out of range from any client.
CREATE TABLE IF NOT EXISTS score_history
(
    domain String COMMENT 'Canonical host name of the company: lower case, punycode, no www.' CODEC(LZ4),
    scored_at DateTime64(3, 'UTC') COMMENT 'Start of the run; with the domain it identifies the record' CODEC(Delta(8), LZ4),
    pipeline_version LowCardinality(String) COMMENT 'Version of the formulas; scores of different versions are not comparable',
    run_id String COMMENT 'Run that wrote the record; empty for generated data' CODEC(ZSTD(1)),
    company_name String COMMENT 'Company name of the most trusted source; derived from the domain when none has one' CODEC(ZSTD(1)),
    country LowCardinality(String) COMMENT 'Country of the headquarters, ISO 3166-1 alpha-2 in upper case, or EU; empty when unknown',
    sector LowCardinality(String) COMMENT 'Sector of the company',
    geo_scope LowCardinality(String) COMMENT 'Reach of the company: global, north_america, europe, asia_pacific, latin_america, middle_east_africa or unknown',
    profile Enum8('unclassified' = 0, 'growth' = 1, 'established' = 2) COMMENT 'Business profile, by size, listing, age and signs of growth; a label on which no point depends',
    rating Enum8('SVC-5' = 1, 'SVC-4' = 2, 'SVC-3' = 3, 'SVC-2' = 4, 'SVC-2+' = 5, 'SVC-1' = 6, 'SVC-1+' = 7) COMMENT 'Grade of the composite; sorts from lowest to highest grade',
    composite Float64 COMMENT 'The score, 0 to 100 in steps of 0.1, premium included' CODEC(LZ4),
    interval_low Float64 COMMENT 'Lower end of the range that holds the composite with a probability of 90 % if all signals were known, 0 to 100 in steps of 0.1' CODEC(ZSTD(1)),
    interval_high Float64 COMMENT 'Upper end of that range; interval_low <= composite <= interval_high' CODEC(ZSTD(1)),
    expected_composite Float64 COMMENT 'Composite with the mean of the cohort in the place of missing signals, 0 to 100 in steps of 0.1' CODEC(ZSTD(1)),
    base Float64 COMMENT 'Weighted sum of the unrounded bucket scores, 0 to 100, premium not included' CODEC(ZSTD(1)),
    scale_premium Float64 COMMENT 'Points added for scale, 0 to 12 in steps of 0.1; part of composite' CODEC(ZSTD(1)),
    team_structure Float64 COMMENT 'Bucket score, 0 to 100 in steps of 0.1' CODEC(ZSTD(1)),
    market_position Float64 COMMENT 'Bucket score, 0 to 100 in steps of 0.1' CODEC(ZSTD(1)),
    momentum_tailwinds Float64 COMMENT 'Bucket score, 0 to 100 in steps of 0.1' CODEC(ZSTD(1)),
    financial_health Float64 COMMENT 'Bucket score, 0 to 100 in steps of 0.1' CODEC(ZSTD(1)),
    momentum_index Float64 COMMENT 'Momentum bucket plus half of the change of base since the record nearest to 30 days before, of 20 to 120; at most 10 points; the bucket itself without such a record' CODEC(ZSTD(1)),
    completeness_pct Float64 COMMENT 'Weighted share of the applicable signals that are not missing, in percent' CODEC(ZSTD(1)),
    team_structure_completeness_pct Float64 COMMENT 'The same share within the bucket, in percent' CODEC(ZSTD(1)),
    market_position_completeness_pct Float64 COMMENT 'The same share within the bucket, in percent' CODEC(ZSTD(1)),
    momentum_tailwinds_completeness_pct Float64 COMMENT 'The same share within the bucket, in percent' CODEC(ZSTD(1)),
    financial_health_completeness_pct Float64 COMMENT 'The same share within the bucket, in percent' CODEC(ZSTD(1)),
    confidence Enum8('directional' = 1, 'low' = 2, 'medium' = 3, 'high' = 4) COMMENT 'How much of the score rests on data; sorts from lowest to highest',
    `signal.id` Array(LowCardinality(String)) COMMENT 'Signal ids in manifest order; the other signal columns are parallel arrays' CODEC(ZSTD(1)),
    `signal.state` Array(Enum8('ok' = 1, 'absent' = 2, 'missing' = 3, 'not_applicable' = 4)) COMMENT 'ok: observed. absent: the sources report that there is none. missing: no value. not_applicable: the signal means nothing for the company' CODEC(ZSTD(1)),
    `signal.raw` Array(Float64) COMMENT 'Value in the unit of the signal; 0 unless ok' CODEC(ZSTD(1)),
    `signal.score` Array(Float64) COMMENT 'Normalised value, 0 to 100; exactly 50 when missing or not applicable' CODEC(ZSTD(1)),
    `signal.source` Array(LowCardinality(String)) COMMENT 'Source whose value was used; when missing, the source that was asked or is switched off, or empty' CODEC(ZSTD(1)),
    `signal.origin` Array(LowCardinality(String)) COMMENT 'Origin of the imported facts whose value was used; empty for other sources' CODEC(ZSTD(1)),
    `signal.reason` Array(LowCardinality(String)) COMMENT 'Why the signal is missing; empty otherwise' CODEC(ZSTD(1)),
    `signal.observed_at` Array(DateTime64(3, 'UTC')) COMMENT 'Time of the observation: of a fact the day for which it is valid, of a value carried forward that of the earlier run; 1970-01-01 without one' CODEC(ZSTD(1)),
    `signal.share` Array(Float64) COMMENT 'Share of the signal in base, 0 to 1; 0 if not applicable. The shares of a record sum to 1' CODEC(ZSTD(1)),
    `warning.source` Array(LowCardinality(String)) COMMENT 'Sources with a warning, in order; the other warning columns are parallel arrays' CODEC(ZSTD(1)),
    `warning.code` Array(LowCardinality(String)) COMMENT 'Kind of failure, such as timeout or rate_limited; stale if observations were carried forward; defunct if the company is no more' CODEC(ZSTD(1)),
    `warning.at` Array(DateTime64(3, 'UTC')) COMMENT 'Time of the failure; of the oldest observation if stale' CODEC(ZSTD(1)),
    written_at DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'Time of the write; of rows with one key the latest counts' CODEC(Delta(8), LZ4),
    CONSTRAINT domain_given CHECK domain != '',
    CONSTRAINT composite_in_range CHECK composite >= 0 AND composite <= 100,
    CONSTRAINT interval_in_range CHECK interval_low >= 0 AND interval_low <= interval_high AND interval_high <= 100,
    CONSTRAINT expected_in_range CHECK expected_composite >= 0 AND expected_composite <= 100,
    CONSTRAINT base_in_range CHECK base >= 0 AND base <= 100,
    CONSTRAINT premium_in_range CHECK scale_premium >= 0 AND scale_premium <= 12,
    CONSTRAINT signal_scores_in_range CHECK arrayAll(score -> score >= 0 AND score <= 100, `signal.score`)
)
ENGINE = ReplacingMergeTree(written_at)
PARTITION BY toYear(scored_at)
ORDER BY (domain, scored_at, pipeline_version)
SETTINGS index_granularity = 512, max_compress_block_size = 131072, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'All scores with their signals. Private: query v1_score_history and v1_signal.';
