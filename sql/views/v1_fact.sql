-- Imported facts, one row per company, origin and fact. Numbers and texts are in columns of their own. The view in the private database has the rows for
-- v1_fact and v1_fact_conflict.
CREATE OR REPLACE VIEW fact
(
    `domain` String COMMENT 'Canonical host name of the company',
    `fact` LowCardinality(String) COMMENT 'Column of the import file, such as revenue_usd, or signal:ID for a raw value of a signal',
    `origin` LowCardinality(String) COMMENT 'File, list or provider that said it',
    `as_of` Date32 COMMENT 'Day for which it is valid',
    `number` Nullable(Float64) COMMENT 'Value of a fact that is a number; NULL for a text',
    `text` String COMMENT 'Value of a fact that is a text; empty for a number',
    `at_least` Bool COMMENT 'Whether the number is a lower bound',
    `source` LowCardinality(String) COMMENT 'Where the row came from, in the words of the file',
    `imported_at` DateTime64(3, 'UTC') COMMENT 'Time of the import that last changed what this origin says about the company'
)
AS SELECT
    domain, f.1 AS fact, origin, as_of, f.2 AS number, f.3 AS text, has(at_least, f.1) AS at_least, source, imported_at
FROM
(
    SELECT
        domain, origin, as_of, at_least, source, company_facts.imported_at AS imported_at,
        arrayConcat(
            arrayFilter(n -> isNotNull(n.2), CAST([
                ('employees', employees, ''), ('revenue_usd', revenue_usd, ''), ('total_assets_usd', total_assets_usd, ''), ('ebitda_usd', ebitda_usd, ''),
                ('market_cap_usd', market_cap_usd, ''), ('pe_ratio', pe_ratio, ''), ('price_sales', price_sales, ''), ('price_book', price_book, ''),
                ('funding_total_usd', funding_total_usd, ''), ('funding_rounds', funding_rounds, ''), ('founders', founders, ''),
                ('founded_year', founded_year, ''), ('sic', sic, ''), ('hiring_regions', hiring_regions, ''), ('listed', listed, '')
            ], 'Array(Tuple(String, Nullable(Float64), String))')),
            arrayFilter(t -> t.3 != '', CAST([
                ('company_name', NULL, company_name), ('country', NULL, country), ('region', NULL, region), ('city', NULL, city), ('industry', NULL, industry),
                ('categories', NULL, arrayStringConcat(categories, '|')), ('status', NULL, status), ('market_cap_class', NULL, market_cap_class),
                ('last_funding_date', NULL, ifNull(toString(last_funding_date), '')), ('ticker', NULL, ticker), ('exchange', NULL, exchange),
                ('cik', NULL, cik), ('lei', NULL, lei), ('isin', NULL, isin), ('github', NULL, github), ('wikidata', NULL, wikidata)
            ], 'Array(Tuple(String, Nullable(Float64), String))')),
            arrayMap((id, v) -> CAST((concat('signal:', id), v, ''), 'Tuple(String, Nullable(Float64), String)'), mapKeys(signal), mapValues(signal))
        ) AS facts
    FROM company_facts FINAL
    WHERE NOT removed
)
ARRAY JOIN facts AS f
COMMENT 'Imported facts by company, origin and fact. Private: query v1_fact.';

CREATE OR REPLACE VIEW {public:Identifier}.v1_fact
(
    `domain` String COMMENT 'Canonical host name of the company',
    `fact` LowCardinality(String) COMMENT 'Column of the import file, such as revenue_usd, or signal:ID for a raw value of a signal',
    `origin` LowCardinality(String) COMMENT 'File, list or provider that said it',
    `as_of` Date32 COMMENT 'Day for which it is valid',
    `number` Nullable(Float64) COMMENT 'Value of a fact that is a number; NULL for a text',
    `text` String COMMENT 'Value of a fact that is a text; empty for a number',
    `at_least` Bool COMMENT 'Whether the number is a lower bound',
    `source` LowCardinality(String) COMMENT 'Where the row came from, in the words of the file',
    `imported_at` DateTime64(3, 'UTC') COMMENT 'Time of the import that last changed what this origin says about the company'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS SELECT * FROM fact AS fact
COMMENT 'Imported facts by company, origin and fact. A condition on domain is fast.';
