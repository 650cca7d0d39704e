-- Every signal of every record, one row each.
CREATE OR REPLACE VIEW v1_signal
(
    `domain` String COMMENT 'Canonical host name of the company',
    `scored_at` DateTime64(3, 'UTC') COMMENT 'When the run began; with the domain it names the record',
    `pipeline_version` LowCardinality(String) COMMENT 'Generation of the formulas',
    `signal` LowCardinality(String) COMMENT 'Id of the signal; GET /v1/signals explains each',
    `state` String COMMENT 'ok: observed. absent: known not to exist. missing: nobody could tell',
    `raw` Nullable(Float64) COMMENT 'Value in the unit of the signal; NULL when missing',
    `score` Float64 COMMENT 'Normalised value, 0 to 100; exactly 50 when missing',
    `source` LowCardinality(String) COMMENT 'Source that answered; empty when missing',
    `reason` LowCardinality(String) COMMENT 'Why it is missing; empty when it is not'
)
AS SELECT
    domain, scored_at, pipeline_version, s_id AS signal, toString(s_state) AS state,
    if(s_state = 'missing', NULL, s_raw) AS raw, s_score AS score, s_source AS source, s_reason AS reason
FROM score_history FINAL
ARRAY JOIN
    `signal.id` AS s_id, `signal.state` AS s_state, `signal.raw` AS s_raw,
    `signal.score` AS s_score, `signal.source` AS s_source, `signal.reason` AS s_reason
COMMENT 'The 67 signals behind each score. One row per record and signal; filter by domain.';
