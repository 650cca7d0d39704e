-- The pipeline versions there have been, so that SQL knows which one is current: the one with the largest number. Public views
-- show records of the current version, as those of different versions must not be compared.
-- A new version is a new migration that inserts a row here; docs/operations.md tells what else belongs to it.
CREATE TABLE IF NOT EXISTS pipeline_version
(
    number UInt32 COMMENT 'Order of the versions; the largest is the current one',
    version String COMMENT 'Name of the version, as in the column pipeline_version of records',
    changes String COMMENT 'What is different since the version before',
    since DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'When this database learnt of the version'
)
ENGINE = ReplacingMergeTree
ORDER BY number
COMMENT 'Pipeline versions. Private: query v1_freshness.';

INSERT INTO pipeline_version (number, version, changes) SELECT 1, 'v1', 'The first one';
