-- The newest row of an account counts. A change of tier is a new row.
CREATE TABLE IF NOT EXISTS account
(
    id String COMMENT 'UUID of the account',
    name String COMMENT 'Name given by the operator',
    tier Enum8('free' = 1, 'starter' = 2, 'growth' = 3, 'scale' = 4, 'enterprise' = 5) COMMENT 'Tier; sorts from smallest to largest',
    created_at DateTime64(3, 'UTC') COMMENT 'When the account was created',
    updated_at DateTime64(3, 'UTC') COMMENT 'Time of the write; of rows with one id the latest counts',
    CONSTRAINT id_given CHECK id != ''
)
ENGINE = ReplacingMergeTree(updated_at)
ORDER BY id
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Accounts of customers. Private; reads need FINAL.';
