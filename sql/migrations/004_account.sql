-- The newest row of an account counts, so a change of tier is a new row.
CREATE TABLE IF NOT EXISTS account
(
    id String COMMENT 'UUID of the account',
    name String COMMENT 'Name given by the operator',
    tier Enum8('free' = 1, 'starter' = 2, 'growth' = 3, 'scale' = 4, 'enterprise' = 5) COMMENT 'Plan; sorts from smallest to largest',
    created_at DateTime64(3, 'UTC') COMMENT 'When the account was opened',
    updated_at DateTime64(3, 'UTC') COMMENT 'When this row was written; of rows with one id the latest counts',
    CONSTRAINT id_given CHECK id != ''
)
ENGINE = ReplacingMergeTree(updated_at)
ORDER BY id
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Customers. Private; reads need FINAL.';
