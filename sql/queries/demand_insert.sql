-- name: demand_insert
-- Appends the day on which a company was asked for, or the start of a run by the refresh job. The other column is 1970-01-01.
INSERT INTO company_demand (domain, asked_on, started_at)
