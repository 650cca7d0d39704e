-- Sorted by hash because that is what a request brings. The engine's version is
-- revoked_at: the row that says "revoked" beats the row that created the key, in
-- whatever order the two arrive and however often either is written again.
CREATE TABLE IF NOT EXISTS api_key
(
    id String COMMENT 'UUID of the key',
    account_id String COMMENT 'Account the key belongs to',
    name String COMMENT 'Name given by the holder; may be empty',
    prefix String COMMENT 'Public beginning of the key, enough to recognise it',
    mode Enum8('test' = 1, 'live' = 2) COMMENT 'Whether the key reaches live data or the sandbox',
    hash String COMMENT 'SHA-256 of the whole key in hex; the key itself is stored nowhere',
    created_at DateTime64(3, 'UTC') COMMENT 'When the key was issued',
    revoked_at DateTime64(3, 'UTC') COMMENT 'When the key was revoked; 1970-01-01 while it is good',
    CONSTRAINT hash_is_sha256 CHECK length(hash) = 64
)
ENGINE = ReplacingMergeTree(revoked_at)
ORDER BY hash
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'API keys, as hashes. Private; reads need FINAL.';
