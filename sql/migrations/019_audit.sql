-- Changes made in the developer console and at the command line, and sign-ins.
CREATE TABLE IF NOT EXISTS audit
(
    at DateTime64(3, 'UTC') COMMENT 'Time of the change' CODEC(Delta(8), ZSTD(1)),
    account_id LowCardinality(String) COMMENT 'Account of the session that made the change, or that a command changed',
    operator Bool COMMENT 'Whether an operator made the change: all commands are by operators',
    session String COMMENT 'First characters of the hash of the session; the same for all changes of a session; empty for a command' CODEC(ZSTD(1)),
    address String COMMENT 'Address of the client, or command line with the user of the system' CODEC(ZSTD(1)),
    action LowCardinality(String) COMMENT 'Kind of the change: sign_in, sign_out, key_created, key_revoked, account_created, tier_changed, import_started or score_started',
    subject String COMMENT 'What was changed: id of a key or account, or a domain; empty for sign-ins' CODEC(ZSTD(1)),
    detail String COMMENT 'Further words about the change, such as the new tier' CODEC(ZSTD(1))
)
ENGINE = MergeTree
PARTITION BY toYear(at)
ORDER BY at
TTL toDateTime(at) + INTERVAL 400 DAY
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Changes made in the console and at the command line, of the last 400 days. Private; query v1_audit.';
