-- name: compact_company_facts
-- Merges replaced rows of company_facts. Skips merged partitions.
OPTIMIZE TABLE company_facts FINAL SETTINGS optimize_skip_merged_partitions = 1
