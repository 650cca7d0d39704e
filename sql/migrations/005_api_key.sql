-- Sorted by hash because a request is verified by the hash of its key. The engine's
-- version is revoked_at: the row of the revocation replaces the row that created the
-- key, whatever order they arrive in and however often they are written.
CREATE TABLE IF NOT EXISTS api_key
(
    id String COMMENT 'UUID of the key',
    account_id String COMMENT 'Account of the key',
    name String COMMENT 'Name given by the holder; may be empty',
    prefix String COMMENT 'Public first characters of the key',
    mode Enum8('test' = 1, 'live' = 2) COMMENT 'live: real data. test: the sandbox',
    hash String COMMENT 'SHA-256 of the whole key in hex; the key is not stored',
    created_at DateTime64(3, 'UTC') COMMENT 'When the key was created',
    revoked_at DateTime64(3, 'UTC') COMMENT 'When the key was revoked; 1970-01-01 while it is valid',
    CONSTRAINT hash_is_sha256 CHECK length(hash) = 64
)
ENGINE = ReplacingMergeTree(revoked_at)
ORDER BY hash
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'API keys, as hashes. Private; reads need FINAL.';
