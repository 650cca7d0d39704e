-- Facts about which two origins differ by more than rounding and time explain: numbers by more than a tenth, and by more than half as much again for each
-- year between their days; texts that identify a company, if they are not equal. The older row of a pair is the other one.
CREATE OR REPLACE VIEW {public:Identifier}.v1_fact_conflict
(
    `domain` String COMMENT 'Canonical host name of the company',
    `fact` LowCardinality(String) COMMENT 'Column of the import file, as in v1_fact',
    `origin` LowCardinality(String) COMMENT 'Origin of the newer value',
    `as_of` Date32 COMMENT 'Day of the newer value',
    `number` Nullable(Float64) COMMENT 'Newer value; NULL for a text',
    `text` String COMMENT 'Newer value; empty for a number',
    `other_origin` LowCardinality(String) COMMENT 'Origin of the older value, or by name of a value of the same day',
    `other_as_of` Date32 COMMENT 'Day of the older value',
    `other_number` Nullable(Float64) COMMENT 'Older value; NULL for a text',
    `other_text` String COMMENT 'Older value; empty for a number',
    `factor` Nullable(Float64) COMMENT 'Larger number over the smaller one; NULL for texts, and for numbers of which one is not above zero'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
AS WITH said[i] AS a
SELECT
    domain, fact, a.1 AS origin, a.2 AS as_of, a.3 AS number, a.4 AS text, b.1 AS other_origin, b.2 AS other_as_of, b.3 AS other_number, b.4 AS other_text,
    if(a.3 > 0 AND b.3 > 0, greatest(a.3, b.3) / least(a.3, b.3), NULL) AS factor
FROM
(
    SELECT
        domain, fact,
        arrayReverseSort(v -> (v.2, v.1), groupArray((origin, as_of, number, text))) AS said
    FROM fact
    WHERE NOT at_least
        AND fact NOT IN ('company_name', 'region', 'city', 'industry', 'categories', 'exchange', 'ticker', 'pe_ratio', 'price_sales', 'price_book')
    GROUP BY domain, fact
    HAVING count() > 1
)
ARRAY JOIN arrayEnumerate(said) AS i
ARRAY JOIN arraySlice(said, i + 1) AS b
WHERE if(
    isNull(said[i].3), said[i].4 != b.4,
    multiIf(
        fact = 'founded_year', abs(said[i].3 - b.3) > 1,
        said[i].3 > 0 AND b.3 > 0,
            greatest(said[i].3, b.3) / least(said[i].3, b.3) > 1.1 * pow(1.5, dateDiff('day', b.2, said[i].2) / 365),
        said[i].3 != b.3))
COMMENT 'Facts about which origins differ. A condition on domain is fast.';
