-- name: seed_run_insert
-- Notes how far the generation of a universe has come.
INSERT INTO seed_run (seed, records, signals, until, domains, target, next)
