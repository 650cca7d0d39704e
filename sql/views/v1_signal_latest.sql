-- Signals of the newest record of each company, by name. ClickHouse reads only the maps that a statement names, each with all its signals. A condition
-- on domain is fast. A name that is no signal gives NULL: values of maps are Nullable for that, by a cast here and not by the type of the column alone,
-- since a subscript is applied before that conversion. ADR 20 has the figures.
CREATE OR REPLACE VIEW {public:Identifier}.v1_signal_latest
(
    `domain` String COMMENT 'Canonical host name of the company',
    `scored_at` DateTime64(3, 'UTC') COMMENT 'Start of the run; with the domain it identifies the record',
    `company_name` String COMMENT 'Company name, as in v1_score_latest',
    `sector` LowCardinality(String) COMMENT 'Sector of the company, or unknown',
    `composite` Float64 COMMENT 'The score, 0 to 100 in steps of 0.1, premium included',
    `confidence` Enum8('directional' = 1, 'low' = 2, 'medium' = 3, 'high' = 4) COMMENT 'How much of the score rests on data; sorts from lowest to highest',
    `raw` Map(LowCardinality(String), Nullable(Float64)) COMMENT 'Value of each signal in its unit, as raw[\'open_roles\']; NULL unless the state is ok',
    `score` Map(LowCardinality(String), Nullable(Float64)) COMMENT 'Normalised value of each signal, 0 to 100; exactly 50 when missing or not applicable',
    `weight` Map(LowCardinality(String), Nullable(Float64)) COMMENT 'Share of each signal in base, 0 to 1',
    `state` Map(LowCardinality(String), Nullable(Enum8('ok' = 1, 'absent' = 2, 'missing' = 3, 'not_applicable' = 4))) COMMENT 'State of each signal, as in v1_signal',
    `source` Map(LowCardinality(String), LowCardinality(Nullable(String))) COMMENT 'Source of each signal, as in v1_signal',
    `origin` Map(LowCardinality(String), LowCardinality(Nullable(String))) COMMENT 'Origin of the facts of each signal, as in v1_signal'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    domain, scored_at, company_name, sector, composite, confidence,
    mapFromArrays(`signal.id`, arrayMap((state, raw) -> if(state = 'ok', raw, NULL), `signal.state`, `signal.raw`)) AS raw,
    mapFromArrays(`signal.id`, CAST(`signal.score`, 'Array(Nullable(Float64))')) AS score,
    mapFromArrays(`signal.id`, CAST(`signal.share`, 'Array(Nullable(Float64))')) AS weight,
    mapFromArrays(`signal.id`, CAST(`signal.state`, 'Array(Nullable(Enum8(\'ok\' = 1, \'absent\' = 2, \'missing\' = 3, \'not_applicable\' = 4)))')) AS state,
    mapFromArrays(`signal.id`, CAST(`signal.source`, 'Array(LowCardinality(Nullable(String)))')) AS source,
    mapFromArrays(`signal.id`, CAST(`signal.origin`, 'Array(LowCardinality(Nullable(String)))')) AS origin
FROM score_latest FINAL
WHERE pipeline_version = (SELECT argMax(version, number) FROM pipeline_version)
COMMENT 'Signals of the newest score of each company under the current pipeline version, by name. One row per company; a condition on domain is fast.';
