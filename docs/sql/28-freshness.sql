-- How fresh is everything?
-- One row per pipeline version: number of companies by age of the score.
-- The last columns are of the refresh job: the share of companies younger than their target age, and how many were due.
-- 21,501 examples: 2 rows.
-- Columns: pipeline_version, is_current, companies, within_24h, within_7d, within_30d, refresh_young_share, refresh_due
SELECT pipeline_version, is_current, companies, within_24h, within_7d, within_30d, refresh_young_share, refresh_due
FROM v1_freshness
ORDER BY is_current DESC, pipeline_version
