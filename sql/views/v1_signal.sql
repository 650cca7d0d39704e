-- All signals of all records, one row each. Bucket and unit are those of the current version; the weight is that of the record.
CREATE OR REPLACE VIEW {public:Identifier}.v1_signal
(
    `domain` String COMMENT 'Canonical host name of the company',
    `scored_at` DateTime64(3, 'UTC') COMMENT 'Start of the run; with the domain it identifies the record',
    `pipeline_version` LowCardinality(String) COMMENT 'Version of the formulas',
    `signal` LowCardinality(String) COMMENT 'Id of the signal, as in GET /v1/signals',
    `bucket` LowCardinality(String) COMMENT 'Bucket of the signal; unknown if the current pipeline version does not have the signal',
    `state` String COMMENT 'ok: observed. absent: the sources report that there is none. missing: no value. not_applicable: the signal means nothing for the company',
    `raw` Nullable(Float64) COMMENT 'Value in the unit of the signal; NULL unless ok',
    `unit` LowCardinality(String) COMMENT 'Unit of raw; unknown if the current pipeline version does not have the signal',
    `score` Float64 COMMENT 'Normalised value, 0 to 100; exactly 50 when missing or not applicable',
    `weight` Float64 COMMENT 'Share of the signal in base, 0 to 1; 0 if not applicable, and in momentum of a defunct company. Otherwise the weights of a record sum to 1',
    `contribution` Float64 COMMENT 'weight times score, in points; the contributions of a record sum to base',
    `source` LowCardinality(String) COMMENT 'Source whose value was used; when missing, the source that was asked or is switched off, or empty',
    `origin` LowCardinality(String) COMMENT 'Origin of the imported facts whose value was used; empty for other sources',
    `reason` LowCardinality(String) COMMENT 'Why the signal is missing; empty otherwise',
    `observed_at` Nullable(DateTime64(3, 'UTC')) COMMENT 'Time of the observation: of a fact the day for which it is valid; NULL without one'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS WITH
    (SELECT (groupArray(signal), groupArray(bucket), groupArray(unit)) FROM signal_definition FINAL WHERE pipeline_version = (SELECT argMax(version, number) FROM pipeline_version)) AS definitions
SELECT
    domain, scored_at, pipeline_version, s_id AS signal,
    transform(s_id, definitions.1, definitions.2, 'unknown') AS bucket,
    toString(s_state) AS state, if(s_state = 'ok', s_raw, NULL) AS raw,
    transform(s_id, definitions.1, definitions.3, 'unknown') AS unit,
    s_score AS score, s_share AS weight, s_share * s_score AS contribution, s_source AS source, s_origin AS origin, s_reason AS reason,
    if(s_state IN ('ok', 'absent'), s_observed_at, NULL) AS observed_at
FROM score_history FINAL
ARRAY JOIN
    `signal.id` AS s_id, `signal.state` AS s_state, `signal.raw` AS s_raw,
    `signal.score` AS s_score, `signal.source` AS s_source, `signal.origin` AS s_origin, `signal.reason` AS s_reason, `signal.observed_at` AS s_observed_at, `signal.share` AS s_share
COMMENT 'The 67 signals of each score. One row per record and signal; use a condition on domain.';
