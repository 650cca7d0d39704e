-- name: facts_staged_page
-- Present and staged layers of the companies of an import, by domain. Present ones include removed layers.
-- params: import String, after String, last String: domains after and up to these. columns: those of facts_get, content, staged.
SELECT * FROM
(
    SELECT
        domain, origin, company_name, country, region, city, industry, categories, sic, founded_year, status, employees, revenue_usd, total_assets_usd,
        ebitda_usd, market_cap_usd, market_cap_class, pe_ratio, price_sales, price_book, funding_total_usd, funding_rounds, last_funding_date,
        founders, hiring_regions, listed, ticker, exchange, cik, lei, isin, github, wikidata, signal, at_least, source, as_of, removed, content, false AS staged
    FROM company_facts
    PREWHERE domain > {after:String} AND domain <= {last:String} AND domain IN
    (
        SELECT domain FROM facts_staged WHERE import_id = {import:String} AND domain > {after:String} AND domain <= {last:String}
    )
    ORDER BY imported_at DESC
    LIMIT 1 BY domain, origin
    UNION ALL
    SELECT
        domain, origin, company_name, country, region, city, industry, categories, sic, founded_year, status, employees, revenue_usd, total_assets_usd,
        ebitda_usd, market_cap_usd, market_cap_class, pe_ratio, price_sales, price_book, funding_total_usd, funding_rounds, last_funding_date,
        founders, hiring_regions, listed, ticker, exchange, cik, lei, isin, github, wikidata, signal, at_least, source, as_of, removed, content, true AS staged
    FROM facts_staged
    WHERE import_id = {import:String} AND domain > {after:String} AND domain <= {last:String}
)
ORDER BY domain, origin, staged
