-- name: compact_company_facts
-- Merges the rows of company_facts that replaced each other into the one that counts. Does nothing where that has been done.
OPTIMIZE TABLE company_facts FINAL SETTINGS optimize_skip_merged_partitions = 1
