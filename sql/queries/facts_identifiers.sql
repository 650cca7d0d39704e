-- name: facts_identifiers
-- Everything that identifies companies: domain, kind and value, in no order. Kind domain has the domain itself, so each company has a row.
SELECT DISTINCT domain, kind, value
FROM company_facts FINAL
ARRAY JOIN
    ['domain', 'name', 'ticker', 'cik', 'lei', 'isin', 'github', 'wikidata'] AS kind,
    [domain, company_name, ticker, cik, lei, isin, github, wikidata] AS value
WHERE value != '' AND NOT removed
