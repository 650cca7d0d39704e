-- What a run that asked live sources learnt on its way to a record: every
-- observation and not only those that were believed, who the company was taken
-- for and why, and values whose change a later run scores. Records themselves are
-- in score_history; a run of imported facts alone leaves no trace, since its
-- record says all about it.
--
-- Sort key: a run reads the traces of its own domain in the last months, which is
-- one short range, and `explain` reads the one of a record.
-- Engine: a run that is worked on again after a crash writes the same key with a
-- later written_at, and replaces what the first attempt left.
-- Partitions: by month, so that a whole month is dropped at once after 400 days;
-- trends look back 130 days at most.
-- Parallel arrays, so that one row is one atomic insert and a reader of values
-- does not unpack evidence. Names of people are never stored.
CREATE TABLE IF NOT EXISTS run_trace
(
    domain String COMMENT 'Canonical host name of the company: lower case, punycode, no www.' CODEC(ZSTD(1)),
    scored_at DateTime64(3, 'UTC') COMMENT 'When the run began; with the domain it identifies the record that the trace belongs to' CODEC(Delta(8), ZSTD(1)),
    run_id String COMMENT 'Run that made the record' CODEC(ZSTD(1)),
    `source.name` Array(LowCardinality(String)) COMMENT 'Sources that were asked; the other source columns run parallel to this one' CODEC(ZSTD(1)),
    `source.outcome` Array(LowCardinality(String)) COMMENT 'answered, or the code of the warning' CODEC(ZSTD(1)),
    `source.took_ms` Array(UInt32) COMMENT 'Time the source took with all waiting, in milliseconds' CODEC(ZSTD(1)),
    `observation.signal` Array(LowCardinality(String)) COMMENT 'Ids of signals, one entry for each source that spoke about one; the other observation columns run parallel' CODEC(ZSTD(1)),
    `observation.source` Array(LowCardinality(String)) COMMENT 'Source that said it' CODEC(ZSTD(1)),
    `observation.state` Array(Enum8('ok' = 1, 'absent' = 2, 'missing' = 3)) COMMENT 'ok: observed. absent: there is none. missing: the source could not tell' CODEC(ZSTD(1)),
    `observation.raw` Array(Float64) COMMENT 'Value in the unit of the signal; 0 and meaningless unless ok' CODEC(ZSTD(1)),
    `observation.reason` Array(LowCardinality(String)) COMMENT 'Why it is missing; empty when it is not' CODEC(ZSTD(1)),
    `value.name` Array(LowCardinality(String)) COMMENT 'Names of kept values, source.name, such as jobs.open_roles; value.number runs parallel' CODEC(ZSTD(1)),
    `value.number` Array(Float64) COMMENT 'The value' CODEC(ZSTD(1)),
    `claim.kind` Array(LowCardinality(String)) COMMENT 'What is claimed about who the company is, such as name, qid or cik; of one kind the most trusted comes first; the other claim columns run parallel' CODEC(ZSTD(1)),
    `claim.value` Array(String) COMMENT 'What is claimed' CODEC(ZSTD(1)),
    `claim.source` Array(LowCardinality(String)) COMMENT 'Source that claims it' CODEC(ZSTD(1)),
    `claim.via` Array(LowCardinality(String)) COMMENT 'In which way the source found it, where that matters; empty otherwise' CODEC(ZSTD(1)),
    `claim.evidence` Array(String) COMMENT 'Why it is believed, in one sentence' CODEC(ZSTD(1)),
    written_at DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'When the row was written; of rows with one key the latest counts' CODEC(Delta(8), ZSTD(1)),
    CONSTRAINT domain_given CHECK domain != ''
)
ENGINE = ReplacingMergeTree(written_at)
PARTITION BY toYYYYMM(scored_at)
ORDER BY (domain, scored_at)
TTL toDateTime(scored_at) + INTERVAL 400 DAY
SETTINGS index_granularity = 256, ttl_only_drop_parts = 1, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'How the records of the last 400 days came about: sources, observations, values, identity evidence. Private.';
