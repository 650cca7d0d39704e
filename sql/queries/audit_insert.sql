-- name: audit_insert
-- Writes changes to the audit log.
INSERT INTO audit (at, account_id, operator, session, address, action, subject, detail)
