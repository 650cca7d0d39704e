-- Apart from api_key, so that noting a use can never write back an old copy of a
-- key that was revoked meanwhile.
CREATE TABLE IF NOT EXISTS api_key_use
(
    key_id String COMMENT 'Key that was used',
    last_used_at SimpleAggregateFunction(max, DateTime64(3, 'UTC')) COMMENT 'Last use noted; may lag by a minute'
)
ENGINE = AggregatingMergeTree
ORDER BY key_id
COMMENT 'Last use of each API key. Private; read max(last_used_at) by key_id.';
