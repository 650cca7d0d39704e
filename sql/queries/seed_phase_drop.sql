-- name: seed_phase_drop
-- Removes what only the generation of a universe needed.
DROP TABLE IF EXISTS seed_phase
