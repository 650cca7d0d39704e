-- Changes made in the console and at the command line, with the name of the account. For operators.
CREATE OR REPLACE VIEW v1_audit
(
    `at` DateTime64(3, 'UTC') COMMENT 'Time of the change',
    `account_id` LowCardinality(String) COMMENT 'Account of the session that made the change, or that a command changed',
    `account_name` String COMMENT 'Name of the account',
    `operator` Bool COMMENT 'Whether an operator made the change: all commands are by operators',
    `session` String COMMENT 'First characters of the hash of the session; the same for all changes of a session; empty for a command',
    `address` String COMMENT 'Address of the client, or command line with the user of the system',
    `action` LowCardinality(String) COMMENT 'Kind of the change: sign_in, sign_out, key_created, key_revoked, account_created, tier_changed, import_started or score_started',
    `subject` String COMMENT 'What was changed: id of a key or account, or a domain; empty for sign-ins',
    `detail` String COMMENT 'Further words about the change, such as the new tier'
)
AS SELECT u.at, u.account_id, a.name AS account_name, u.operator, u.session, u.address, u.action, u.subject, u.detail
FROM audit AS u
LEFT JOIN (SELECT id, name FROM account FINAL) AS a ON a.id = u.account_id
COMMENT 'Changes made in the console and at the command line. One row per change.';
