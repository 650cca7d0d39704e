-- The audit log has changes of the command line too.
ALTER TABLE audit
    COMMENT COLUMN account_id 'Account of the session that made the change, or that a command changed',
    COMMENT COLUMN operator 'Whether an operator made the change: all commands are by operators',
    COMMENT COLUMN session 'First characters of the hash of the session; the same for all changes of a session; empty for a command',
    COMMENT COLUMN address 'Address of the client, or command line with the user of the system',
    COMMENT COLUMN action 'Kind of the change: sign_in, sign_out, key_created, key_revoked, account_created, tier_changed, import_started or score_started';

ALTER TABLE audit MODIFY COMMENT 'Changes made in the console and at the command line, of the last 400 days. Private; query v1_audit.';
