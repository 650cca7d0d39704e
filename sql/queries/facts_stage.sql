-- name: facts_stage
-- Keeps rows of an import aside until it is committed.
INSERT INTO facts_staged (domain, origin, company_name, country, region, city, industry, categories, sic, founded_year, status, employees, revenue_usd, total_assets_usd, ebitda_usd, market_cap_usd, market_cap_class, pe_ratio, price_sales, price_book, funding_total_usd, funding_rounds, last_funding_date, founders, hiring_regions, listed, ticker, exchange, cik, lei, isin, github, wikidata, signal, at_least, source, as_of, import_id)
