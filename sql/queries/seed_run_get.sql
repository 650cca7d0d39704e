-- name: seed_run_get
-- The progress of the universe generated in this database: 0 or 1 row.
SELECT seed, records, signals, until, domains, target, next FROM seed_run ORDER BY progress DESC LIMIT 1
