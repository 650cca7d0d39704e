-- name: cold_insert
-- Writes cold calls to the ledger.
INSERT INTO cold_call (at, job_id, run_id, account_id, key_id, domain, refunded)
