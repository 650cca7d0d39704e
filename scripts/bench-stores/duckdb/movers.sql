-- The newest record and the newest before each window, by company, in one pass; names at the end for those shown.
CREATE OR REPLACE TEMP TABLE moved AS
SELECT domain, arg_max(composite, scored_at) AS now,
    arg_max(composite, scored_at) FILTER (scored_at < $end - INTERVAL 7 DAY) AS then_7d,
    arg_max(composite, scored_at) FILTER (scored_at < $end - INTERVAL 30 DAY) AS then_30d,
    arg_max(composite, scored_at) FILTER (scored_at < $end - INTERVAL 90 DAY) AS then_90d
FROM score_history
WHERE scored_at <= $end
GROUP BY domain;
WITH deltas AS (
    SELECT '7d' AS span, domain, now, then_7d AS before, round((now - then_7d) * 10) AS delta FROM moved WHERE now <> then_7d
    UNION ALL SELECT '30d', domain, now, then_30d, round((now - then_30d) * 10) FROM moved WHERE now <> then_30d
    UNION ALL SELECT '90d', domain, now, then_90d, round((now - then_90d) * 10) FROM moved WHERE now <> then_90d
), shown AS (
    SELECT span, delta > 0 AS up, unnest(arg_min({'domain': domain, 'now': now, 'before': before, 'delta': delta}, (-abs(delta), domain), 20)) AS mover
    FROM deltas
    GROUP BY span, up
)
SELECT span, up, mover, company_name FROM shown JOIN latest ON latest.domain = mover.domain
