-- name: facts_get
-- Newest import of one company: 0 or 1 row. params: domain String.
SELECT
    domain, company_name, country, region, city, industry, categories, sic, founded_year, status, employees, revenue_usd,
    total_assets_usd, ebitda_usd, market_cap_usd, pe_ratio, price_sales, price_book, funding_total_usd, funding_rounds,
    founders, hiring_regions, listed, signal, source, as_of, imported_at
FROM company_facts
WHERE domain = {domain:String}
ORDER BY imported_at DESC
LIMIT 1
