-- name: audit_list
-- Newest changes of the audit log, with the name of the account.
-- params: limit UInt32.
SELECT at, account_id, account_name, operator, session, address, action, subject, detail
FROM v1_audit
ORDER BY at DESC
LIMIT {limit:UInt32}
