-- How fresh is everything?
-- One row per pipeline version: how many companies have a score of which age.
-- Columns: pipeline_version, is_current, companies, within_24h, within_7d, within_30d
SELECT pipeline_version, is_current, companies, within_24h, within_7d, within_30d
FROM v1_freshness
ORDER BY is_current DESC, pipeline_version
