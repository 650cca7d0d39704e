-- name: seed_run_insert
-- Appends the progress of the generation of a universe.
INSERT INTO seed_run (seed, records, signals, until, domains, target, next)
