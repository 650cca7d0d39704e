-- name: trace_insert
-- Appends traces of runs.
INSERT INTO run_trace (domain, scored_at, run_id, `source.name`, `source.outcome`, `source.took_ms`, `observation.signal`, `observation.source`, `observation.state`, `observation.raw`, `observation.reason`, `value.name`, `value.number`, `claim.kind`, `claim.value`, `claim.source`, `claim.via`, `claim.evidence`)
