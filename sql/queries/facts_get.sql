-- name: facts_get
-- Layers of facts per domain, without those that were removed. Companies without facts have no row. params: domains Array(String).
SELECT * FROM
(
    SELECT
        domain, origin, company_name, country, region, city, industry, categories, sic, founded_year, status, employees, revenue_usd, total_assets_usd,
        ebitda_usd, market_cap_usd, market_cap_class, pe_ratio, price_sales, price_book, funding_total_usd, funding_rounds, last_funding_date,
        founders, hiring_regions, listed, ticker, exchange, cik, lei, isin, github, wikidata, signal, at_least, source, as_of, removed
    FROM company_facts
    PREWHERE domain IN {domains:Array(String)}
    ORDER BY imported_at DESC
    LIMIT 1 BY domain, origin
)
WHERE NOT removed
SETTINGS max_threads = 1
