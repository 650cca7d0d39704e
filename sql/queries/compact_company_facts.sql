-- name: compact_company_facts
-- Merges the rows of company_facts that replaced each other into the one that counts.
OPTIMIZE TABLE company_facts FINAL
