-- Do the cron jobs work?
-- The last run of each job.
-- 21,501 examples: no rows before a job has run, then a row for each job.
-- Columns: job, outcome, took_ms, companies, error
SELECT subject AS job, argMax(r.outcome, started_at) AS outcome, argMax(r.took_ms, started_at) AS took_ms, argMax(r.companies, started_at) AS companies,
    argMax(r.error, started_at) AS error
FROM v1_run AS r
WHERE kind = 'batch'
GROUP BY subject
ORDER BY job
