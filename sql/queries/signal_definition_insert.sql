-- name: signal_definition_insert
-- Writes the signals of a pipeline version. Equal keys replace each other.
INSERT INTO signal_definition (pipeline_version, position, signal, bucket, name, unit, direction, weight_in_bucket, weight, raw_p10, raw_p50, raw_p90, absent_score, population, basis, curve, sources, not_for, max_age_days)
