-- name: seed_phase_drop
-- Drops the table of scored companies after the generation of a universe.
DROP TABLE IF EXISTS seed_phase
