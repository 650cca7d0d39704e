-- name: compact_company_demand
-- Merges the rows of company_demand of one company. Does nothing where that has been done.
OPTIMIZE TABLE company_demand FINAL SETTINGS optimize_skip_merged_partitions = 1
