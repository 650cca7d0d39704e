-- Signals of newest records. A statement that reads a signal of all companies reads one row per company, whatever the length of the
-- history, and needs no join; docs/adr/0020 has the figures.
-- Codec: a granule of 256 rows has 17 kB to 137 kB in each of these columns, so ZSTD has blocks of a useful size here.
ALTER TABLE score_latest
    ADD COLUMN IF NOT EXISTS `signal.id` Array(LowCardinality(String)) COMMENT 'Signal ids in manifest order; the other signal columns are parallel arrays' CODEC(ZSTD(1)) AFTER confidence,
    ADD COLUMN IF NOT EXISTS `signal.state` Array(Enum8('ok' = 1, 'absent' = 2, 'missing' = 3, 'not_applicable' = 4)) COMMENT 'ok: observed. absent: the sources report that there is none. missing: no value. not_applicable: the signal means nothing for the company' CODEC(ZSTD(1)) AFTER `signal.id`,
    ADD COLUMN IF NOT EXISTS `signal.raw` Array(Float64) COMMENT 'Value in the unit of the signal; 0 unless ok' CODEC(ZSTD(1)) AFTER `signal.state`,
    ADD COLUMN IF NOT EXISTS `signal.score` Array(Float64) COMMENT 'Normalised value, 0 to 100; exactly 50 when missing or not applicable' CODEC(ZSTD(1)) AFTER `signal.raw`,
    ADD COLUMN IF NOT EXISTS `signal.share` Array(Float64) COMMENT 'Share of the signal in base, 0 to 1; 0 if not applicable' CODEC(ZSTD(1)) AFTER `signal.score`,
    ADD COLUMN IF NOT EXISTS `signal.source` Array(LowCardinality(String)) COMMENT 'Source whose value was used; when missing, the source that was asked or is switched off, or empty' CODEC(ZSTD(1)) AFTER `signal.share`;

ALTER TABLE score_latest MODIFY COMMENT 'Newest record per company and pipeline version, with its signals. Private: query v1_score_latest and v1_signal_latest.';

ALTER TABLE score_latest_feed MODIFY QUERY SELECT
    domain, pipeline_version, scored_at, company_name, country, sector, geo_scope, profile, rating,
    composite, interval_low, interval_high, expected_composite, base, scale_premium, team_structure, market_position, momentum_tailwinds, financial_health,
    momentum_index, completeness_pct, confidence,
    `signal.id`, `signal.state`, `signal.raw`, `signal.score`, `signal.share`, `signal.source`,
    run_id, written_at
FROM score_history;

INSERT INTO score_latest
(
    domain, pipeline_version, scored_at, company_name, country, sector, geo_scope, profile, rating,
    composite, interval_low, interval_high, expected_composite, base, scale_premium, team_structure, market_position, momentum_tailwinds, financial_health,
    momentum_index, completeness_pct, confidence,
    `signal.id`, `signal.state`, `signal.raw`, `signal.score`, `signal.share`, `signal.source`,
    run_id, written_at
)
SELECT
    domain, pipeline_version, scored_at, company_name, country, sector, geo_scope, profile, rating,
    composite, interval_low, interval_high, expected_composite, base, scale_premium, team_structure, market_position, momentum_tailwinds, financial_health,
    momentum_index, completeness_pct, confidence,
    `signal.id`, `signal.state`, `signal.raw`, `signal.score`, `signal.share`, `signal.source`,
    run_id, written_at
FROM score_history FINAL
WHERE (domain, scored_at, pipeline_version) IN (SELECT domain, scored_at, pipeline_version FROM score_latest FINAL);
