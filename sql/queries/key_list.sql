-- name: key_list
-- Keys of one account with their last use, oldest first. An empty id selects the keys of all accounts.
-- params: account_id String.
SELECT id, account_id, name, prefix, mode, hash, created_at, revoked_at, used.last_used_at AS last_used_at
FROM api_key AS k FINAL
LEFT JOIN (SELECT key_id, max(last_used_at) AS last_used_at FROM api_key_use GROUP BY key_id) AS used ON used.key_id = k.id
WHERE {account_id:String} = '' OR account_id = {account_id:String}
ORDER BY created_at, id
