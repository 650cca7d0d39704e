-- name: resolve_companies
-- What identifies companies, in no order: one row per domain from the facts of all origins, and one from its scores. name is the one to show.
-- tickers are EXCHANGE:TICKER. Both parts are read in the order of their keys, so that memory does not grow with the companies.
-- columns: domain, name, names, tickers, ciks, leis, isins.
SELECT
    domain, argMax(company_name, (company_name != '', as_of, origin)) AS name,
    groupUniqArrayIf(company_name, company_name != '') AS names,
    groupUniqArrayIf(concat(exchange, ':', ticker), ticker != '') AS tickers,
    groupUniqArrayIf(cik, cik != '') AS ciks,
    groupUniqArrayIf(lei, lei != '') AS leis,
    groupUniqArrayIf(isin, isin != '') AS isins
FROM company_facts FINAL
WHERE NOT removed
GROUP BY domain
UNION ALL
SELECT
    domain, argMax(company_name, (scored_at, written_at)) AS name, [name] AS names,
    []::Array(String) AS tickers, []::Array(String) AS ciks, []::Array(String) AS leis, []::Array(String) AS isins
FROM score_latest
WHERE company_name != ''
GROUP BY domain
SETTINGS optimize_aggregation_in_order = 1
