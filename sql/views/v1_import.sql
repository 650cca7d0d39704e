-- Imports of facts, one row each.
CREATE OR REPLACE VIEW {public:Identifier}.v1_import
(
    `started_at` DateTime64(3, 'UTC') COMMENT 'Start of the import',
    `finished_at` Nullable(DateTime64(3, 'UTC')) COMMENT 'End of the import; NULL before',
    `import_id` String COMMENT 'Id of the import',
    `kind` LowCardinality(String) COMMENT 'import: layers of files. remove: an origin was removed',
    `state` LowCardinality(String) COMMENT 'committed: accepted and perhaps not visible yet. done: visible. failed: nothing was changed',
    `origins` Array(LowCardinality(String)) COMMENT 'Origins of the facts',
    `recipe` LowCardinality(String) COMMENT 'Recipe that read the files; empty for a file with the columns of an import',
    `file` String COMMENT 'Names of the files, separated by spaces',
    `rows_read` UInt64 COMMENT 'Rows of the files',
    `rows_matched` UInt64 COMMENT 'Rows with a known company',
    `rejected` Map(String, UInt64) COMMENT 'Number of other rows by reason',
    `layers_changed` UInt64 COMMENT 'Companies and origins whose facts were changed; all others were the same already',
    `error` String COMMENT 'Cause of a failure; empty otherwise'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT
    started_at, if(toUnixTimestamp64Milli(finished_at) = 0, NULL, finished_at) AS finished_at, import_id, toString(kind) AS kind, toString(state) AS state,
    origins, recipe, file, rows_read, rows_matched, rejected, layers_changed, error
FROM facts_import FINAL
COMMENT 'Imports of facts of the last 400 days.';
