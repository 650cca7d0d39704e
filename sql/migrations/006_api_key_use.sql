-- Separate from api_key, so that a write of the last use cannot restore an old row
-- of a key that was revoked in the meantime.
CREATE TABLE IF NOT EXISTS api_key_use
(
    key_id String COMMENT 'Key that was used',
    last_used_at SimpleAggregateFunction(max, DateTime64(3, 'UTC')) COMMENT 'Last use; may lag by a minute'
)
ENGINE = AggregatingMergeTree
ORDER BY key_id
COMMENT 'Last use of each API key. Private; read max(last_used_at) by key_id.';
