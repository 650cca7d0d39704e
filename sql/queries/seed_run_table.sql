-- name: seed_run_table
-- Creates the table with the progress of the generated universe of this database.
CREATE TABLE IF NOT EXISTS seed_run
(
    seed UInt64 COMMENT 'Seed of the universe',
    records UInt32 COMMENT 'Records of each company',
    signals LowCardinality(String) COMMENT 'Which records have their signals: newest, all or none',
    until DateTime64(3, 'UTC') COMMENT 'When the youngest records are made',
    domains UInt64 COMMENT 'Companies that are written, from the first',
    target UInt64 COMMENT 'Companies that are being written',
    next UInt32 COMMENT 'Number of the names that come next; 1048576 when all are written',
    progress UInt64 MATERIALIZED target * 2097152 + next COMMENT 'Grows with each step; of rows with one seed the largest counts'
)
ENGINE = ReplacingMergeTree(progress)
ORDER BY seed
COMMENT 'Generated universes of this database. Its companies do not exist.'
