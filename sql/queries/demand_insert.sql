-- name: demand_insert
-- Notes that companies were asked for, or that the refresh job started a run for them. What a row does not say is 1970-01-01.
INSERT INTO company_demand (domain, asked_on, started_at)
