-- What a run of live sources observed: all observations and not only those that were
-- chosen, claims about the company's identity with their evidence, and values that a
-- later run compares with. Records are in score_history. A run of facts alone has no
-- trace, because its record has all of it.
--
-- Sort key: a run reads the traces of its own domain of the last months, which is one
-- short range. `explain` reads the trace of one record.
-- Engine: a repeated attempt of a run writes the same key with a later written_at and
-- replaces the trace of the first attempt.
-- Partitions: one per month, dropped as a whole after 400 days. Trends look back 130
-- days at most.
-- Parallel arrays: a trace is one atomic insert, and a query of values does not unpack
-- evidence. Names of people are never stored.
CREATE TABLE IF NOT EXISTS run_trace
(
    domain String COMMENT 'Canonical host name of the company: lower case, punycode, no www.' CODEC(ZSTD(1)),
    scored_at DateTime64(3, 'UTC') COMMENT 'Start of the run; with the domain it identifies the record of the trace' CODEC(Delta(8), ZSTD(1)),
    run_id String COMMENT 'Run that wrote the record' CODEC(ZSTD(1)),
    `source.name` Array(LowCardinality(String)) COMMENT 'Sources that were asked; the other source columns are parallel arrays' CODEC(ZSTD(1)),
    `source.outcome` Array(LowCardinality(String)) COMMENT 'answered, or the code of the failure' CODEC(ZSTD(1)),
    `source.took_ms` Array(UInt32) COMMENT 'Duration of the source with all waiting, in milliseconds' CODEC(ZSTD(1)),
    `observation.signal` Array(LowCardinality(String)) COMMENT 'Signal ids, one entry per signal and source; the other observation columns are parallel arrays' CODEC(ZSTD(1)),
    `observation.source` Array(LowCardinality(String)) COMMENT 'Source of the observation' CODEC(ZSTD(1)),
    `observation.state` Array(Enum8('ok' = 1, 'absent' = 2, 'missing' = 3)) COMMENT 'ok: observed. absent: there is none. missing: the source has no answer' CODEC(ZSTD(1)),
    `observation.raw` Array(Float64) COMMENT 'Value in the unit of the signal; only valid when ok' CODEC(ZSTD(1)),
    `observation.reason` Array(LowCardinality(String)) COMMENT 'Why it is missing; empty otherwise' CODEC(ZSTD(1)),
    `value.name` Array(LowCardinality(String)) COMMENT 'Names of stored values, source.name, such as jobs.open_roles; value.number is parallel' CODEC(ZSTD(1)),
    `value.number` Array(Float64) COMMENT 'The value' CODEC(ZSTD(1)),
    `claim.kind` Array(LowCardinality(String)) COMMENT 'Kind of a claim about the identity of the company, such as name, qid or cik; within a kind the most trusted comes first; the other claim columns are parallel arrays' CODEC(ZSTD(1)),
    `claim.value` Array(String) COMMENT 'Claimed value' CODEC(ZSTD(1)),
    `claim.source` Array(LowCardinality(String)) COMMENT 'Source of the claim' CODEC(ZSTD(1)),
    `claim.via` Array(LowCardinality(String)) COMMENT 'How the source found it, if that matters; empty otherwise' CODEC(ZSTD(1)),
    `claim.evidence` Array(String) COMMENT 'Evidence in one sentence' CODEC(ZSTD(1)),
    written_at DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'Time of the write; of rows with one key the latest counts' CODEC(Delta(8), ZSTD(1)),
    CONSTRAINT domain_given CHECK domain != ''
)
ENGINE = ReplacingMergeTree(written_at)
PARTITION BY toYYYYMM(scored_at)
ORDER BY (domain, scored_at)
TTL toDateTime(scored_at) + INTERVAL 400 DAY
SETTINGS index_granularity = 256, ttl_only_drop_parts = 1, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Traces of the runs of the last 400 days: sources, observations, values, claims. Private.';
