-- Every score ever made, one row per record, kept forever: the record of the service.
--
-- Sort key: a history page reads one domain in time order, backwards, so a page
-- is one short range of the table. pipeline_version is last in the key because
-- a company rescored under new formulas keeps both results.
-- Engine: a record that is written again (a replayed run, an insert whose answer
-- was lost) has the same key and the later written_at, and replaces itself when
-- parts merge. Until then both copies can be seen: read v1_score_history, or use
-- FINAL.
-- Signals are parallel arrays inside the row. One row is then one atomic insert,
-- and the array columns cost nothing to those who do not read them.
-- Partitions: by year. A page then touches few parts, while a reader of recent
-- weeks skips the parts of older years and an operator can move or back up a
-- closed year as one piece. There is no TTL.
-- Granularity: 512 rows. With the default of 8192 a point read would unpack
-- thousands of neighbours' signals to return one; docs/adr/0003 has the numbers.
-- Blocks: a file is written in pieces as large as the largest block, and Linux may
-- not take the processor from a program within one write. With pieces of a megabyte
-- other programs waited for up to 10 ms; docs/adr/0009 has the numbers.
-- Packing: the movers job reads domain, scored_at, composite and written_at of all
-- records, so these four are packed with LZ4. The table takes an eighth more disk,
-- and the job a quarter less CPU.
-- Durability: the part is flushed to the disk before the insert is answered, so
-- an acknowledged record survives a power cut and not only a killed process.
-- Constraints: a value out of its range is refused here, whoever writes it.
CREATE TABLE IF NOT EXISTS score_history
(
    domain String COMMENT 'Canonical host name of the company: lower case, punycode, no www.' CODEC(LZ4),
    scored_at DateTime64(3, 'UTC') COMMENT 'When the run began; with the domain it identifies the record' CODEC(Delta(8), LZ4),
    pipeline_version LowCardinality(String) COMMENT 'Generation of the formulas; never compare scores of different versions',
    run_id String COMMENT 'Run that made the record; empty for generated data' CODEC(ZSTD(1)),
    company_name String COMMENT 'Best name found; derived from the domain when no source knew one' CODEC(ZSTD(1)),
    country LowCardinality(String) COMMENT 'Seat, ISO 3166-1 alpha-2 in upper case; empty when unknown',
    sector LowCardinality(String) COMMENT 'Sector the company was assigned to',
    geo_scope LowCardinality(String) COMMENT 'How far its business reaches',
    profile Enum8('unclassified' = 0, 'growth' = 1, 'established' = 2) COMMENT 'Business profile; decides how much scale premium can be earned',
    rating Enum8('SVC-5' = 1, 'SVC-4' = 2, 'SVC-3' = 3, 'SVC-2' = 4, 'SVC-2+' = 5, 'SVC-1' = 6, 'SVC-1+' = 7) COMMENT 'Grade of the composite; sorts from lowest to highest grade',
    composite Float64 COMMENT 'The score, 0 to 100 in steps of 0.1, premium included' CODEC(LZ4),
    base Float64 COMMENT 'Weighted sum of the unrounded bucket scores, 0 to 100, premium not included' CODEC(ZSTD(1)),
    scale_premium Float64 COMMENT 'Points added for proven scale, 0 to 12 in steps of 0.1; part of composite' CODEC(ZSTD(1)),
    team_structure Float64 COMMENT 'Bucket score, 0 to 100 in steps of 0.1' CODEC(ZSTD(1)),
    market_position Float64 COMMENT 'Bucket score, 0 to 100 in steps of 0.1' CODEC(ZSTD(1)),
    momentum_tailwinds Float64 COMMENT 'Bucket score, 0 to 100 in steps of 0.1' CODEC(ZSTD(1)),
    financial_health Float64 COMMENT 'Bucket score, 0 to 100 in steps of 0.1' CODEC(ZSTD(1)),
    momentum_index Float64 COMMENT 'Direction against the record of a month before, 0 to 100; 50 is no change' CODEC(ZSTD(1)),
    completeness_pct Float64 COMMENT 'Weighted share of the signals that rest on data, 0 to 100' CODEC(ZSTD(1)),
    team_structure_completeness_pct Float64 COMMENT 'The same share within the bucket, 0 to 100' CODEC(ZSTD(1)),
    market_position_completeness_pct Float64 COMMENT 'The same share within the bucket, 0 to 100' CODEC(ZSTD(1)),
    momentum_tailwinds_completeness_pct Float64 COMMENT 'The same share within the bucket, 0 to 100' CODEC(ZSTD(1)),
    financial_health_completeness_pct Float64 COMMENT 'The same share within the bucket, 0 to 100' CODEC(ZSTD(1)),
    confidence Enum8('directional' = 1, 'low' = 2, 'medium' = 3, 'high' = 4) COMMENT 'How far the score rests on data; sorts from least to most trustworthy',
    `signal.id` Array(LowCardinality(String)) COMMENT 'Ids of the signals in manifest order; the other signal columns run parallel to this one' CODEC(ZSTD(1)),
    `signal.state` Array(Enum8('ok' = 1, 'absent' = 2, 'missing' = 3)) COMMENT 'ok: observed. absent: every source that could know said there is none. missing: nobody could tell' CODEC(ZSTD(1)),
    `signal.raw` Array(Float64) COMMENT 'Value in the unit of the signal; the value for none when absent; 0 and meaningless when missing' CODEC(ZSTD(1)),
    `signal.score` Array(Float64) COMMENT 'Normalised value, 0 to 100; exactly 50 when missing' CODEC(ZSTD(1)),
    `signal.source` Array(LowCardinality(String)) COMMENT 'Source that answered; empty when missing' CODEC(ZSTD(1)),
    `signal.reason` Array(LowCardinality(String)) COMMENT 'Why the signal is missing; empty when it is not' CODEC(ZSTD(1)),
    `warning.source` Array(LowCardinality(String)) COMMENT 'Sources that failed during the run, in order; the other warning columns run parallel' CODEC(ZSTD(1)),
    `warning.code` Array(LowCardinality(String)) COMMENT 'What went wrong, such as timeout or rate_limited' CODEC(ZSTD(1)),
    `warning.at` Array(DateTime64(3, 'UTC')) COMMENT 'When it went wrong' CODEC(ZSTD(1)),
    written_at DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'When the row was written; of rows with one key the latest counts' CODEC(Delta(8), LZ4),
    CONSTRAINT domain_given CHECK domain != '',
    CONSTRAINT composite_in_range CHECK composite >= 0 AND composite <= 100,
    CONSTRAINT base_in_range CHECK base >= 0 AND base <= 100,
    CONSTRAINT premium_in_range CHECK scale_premium >= 0 AND scale_premium <= 12,
    CONSTRAINT signal_scores_in_range CHECK arrayAll(score -> score >= 0 AND score <= 100, `signal.score`)
)
ENGINE = ReplacingMergeTree(written_at)
PARTITION BY toYear(scored_at)
ORDER BY (domain, scored_at, pipeline_version)
SETTINGS index_granularity = 512, max_compress_block_size = 131072, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Every score ever made, with every signal. Private: query v1_score_history and v1_signal.';
