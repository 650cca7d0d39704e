-- name: compact_account
-- Merges the rows of account that replaced each other into the one that counts.
OPTIMIZE TABLE account FINAL
