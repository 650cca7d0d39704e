-- name: compact_company_demand
-- Merges the rows of company_demand into one row per company. Skips merged partitions.
OPTIMIZE TABLE company_demand FINAL SETTINGS optimize_skip_merged_partitions = 1
