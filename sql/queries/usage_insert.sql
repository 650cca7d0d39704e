-- name: usage_insert
-- Appends running totals of accounts.
INSERT INTO usage (period, account_id, tier, cached_calls, cold_calls, updated_at)
