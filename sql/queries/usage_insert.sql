-- name: usage_insert
-- Writes running totals of accounts.
INSERT INTO usage (period, account_id, tier, cached_calls, cold_calls, updated_at)
