-- The newest record within the window and the newest before it, by company, from the index alone; names at the end for those shown.
WITH now AS (
    SELECT DISTINCT ON (domain) domain, composite
    FROM score_history
    WHERE scored_at >= :'end'::timestamp - :'window'::interval AND scored_at <= :'end'
    ORDER BY domain, scored_at DESC, written_at DESC
), before AS (
    SELECT DISTINCT ON (domain) domain, composite
    FROM score_history
    WHERE scored_at < :'end'::timestamp - :'window'::interval
    ORDER BY domain, scored_at DESC, written_at DESC
), moved AS MATERIALIZED (
    SELECT domain, now.composite AS now, before.composite AS then, round((now.composite - before.composite) * 10) AS delta
    FROM now JOIN before USING (domain)
    WHERE now.composite <> before.composite
), shown AS (
    (SELECT 'up' AS list, * FROM moved WHERE delta > 0 ORDER BY delta DESC, domain LIMIT 20)
    UNION ALL
    (SELECT 'down' AS list, * FROM moved WHERE delta < 0 ORDER BY delta, domain LIMIT 20)
)
SELECT list, domain, company_name, shown.now, shown.then, delta
FROM shown JOIN latest USING (domain)
ORDER BY list DESC, abs(delta) DESC, domain;
