-- name: seed_run_get
-- The universe that was generated here: 0 or 1 row.
SELECT seed, records, signals, until, domains, target, next FROM seed_run ORDER BY progress DESC LIMIT 1
