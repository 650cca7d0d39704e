-- Imports of facts. An import is staged first, in facts_staged. Then a row with the
-- state committed is written here, then the layers are copied to company_facts, then
-- the state is done. An import that ended before it was committed changed nothing; one
-- that ended afterwards is finished by the next import or batch process.
-- Kept for 400 days.
CREATE TABLE IF NOT EXISTS facts_import
(
    import_id String COMMENT 'UUID of the import' CODEC(ZSTD(1)),
    kind Enum8('import' = 1, 'remove' = 2) COMMENT 'import: layers of a file. remove: all layers of an origin were removed',
    state Enum8('committed' = 1, 'done' = 2, 'failed' = 3) COMMENT 'committed: accepted and perhaps not visible yet. done: visible. failed: nothing was changed',
    origins Array(LowCardinality(String)) COMMENT 'Origins of the layers, sorted' CODEC(ZSTD(1)),
    recipe LowCardinality(String) COMMENT 'Recipe that read the files; empty for a file with the columns of an import',
    file String COMMENT 'Names of the files, separated by spaces' CODEC(ZSTD(1)),
    digest String COMMENT 'SHA-256 of each file in hexadecimal, sorted, separated by spaces; empty unless the import came from an inbox' CODEC(ZSTD(1)),
    started_at DateTime64(3, 'UTC') COMMENT 'Start of the import' CODEC(Delta(8), ZSTD(1)),
    committed_at DateTime64(3, 'UTC') COMMENT 'imported_at of the layers; 1970-01-01 after failed' CODEC(Delta(8), ZSTD(1)),
    finished_at DateTime64(3, 'UTC') COMMENT 'End of the import; 1970-01-01 before' CODEC(Delta(8), ZSTD(1)),
    rows_read UInt64 COMMENT 'Rows of the files',
    rows_matched UInt64 COMMENT 'Rows with a known company: layers that were staged',
    rejected Map(String, UInt64) COMMENT 'Number of other rows by reason' CODEC(ZSTD(1)),
    layers_changed UInt64 COMMENT 'Layers that the import wrote or removed; the others were the same already',
    error String COMMENT 'Cause of a failure; empty otherwise' CODEC(ZSTD(1)),
    written_at DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'Time of the write; of rows with one id the latest counts' CODEC(Delta(8), ZSTD(1))
)
ENGINE = ReplacingMergeTree(written_at)
ORDER BY import_id
TTL toDateTime(started_at) + INTERVAL 400 DAY
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Imports of facts of the last 400 days. Private; query v1_import.';

-- Layers of imports that are not committed yet. One partition per import, which is
-- dropped at its end.
CREATE TABLE IF NOT EXISTS facts_staged AS company_facts
ENGINE = MergeTree
PARTITION BY import_id
ORDER BY (domain, origin)
TTL toDateTime(imported_at) + INTERVAL 2 DAY
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Layers of imports in progress. Private.';
