-- name: facts_insert
-- Writes facts. The newest import of a company replaces the others.
INSERT INTO company_facts (domain, company_name, country, region, city, industry, categories, sic, founded_year, status, employees, revenue_usd, total_assets_usd, ebitda_usd, market_cap_usd, market_cap_class, pe_ratio, price_sales, price_book, funding_total_usd, funding_rounds, last_funding_date, founders, hiring_regions, listed, signal, source, as_of, imported_at)
