-- name: seed_run_table
-- Creates the table with the progress of the generated universe of this database.
CREATE TABLE IF NOT EXISTS seed_run
(
    seed UInt64 COMMENT 'Seed of the universe',
    records UInt32 COMMENT 'Records of each company',
    signals LowCardinality(String) COMMENT 'Records with signals: newest, all or none',
    until DateTime64(3, 'UTC') COMMENT 'scored_at of the youngest records',
    domains UInt64 COMMENT 'Number of companies written',
    target UInt64 COMMENT 'Number of companies when the current generation ends',
    next UInt32 COMMENT 'Number of the next names; 1048576 when all are written',
    progress UInt64 MATERIALIZED target * 2097152 + next COMMENT 'Grows with each step; of rows with one seed the largest counts'
)
ENGINE = ReplacingMergeTree(progress)
ORDER BY seed
COMMENT 'Generated universes of this database. Their companies do not exist.'
