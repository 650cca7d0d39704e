-- The movers of a window, found by sorting all history twice. params: days UInt8, end String.
WITH
    parseDateTime64BestEffort({end:String}, 3, 'UTC') AS window_end,
    window_end - toIntervalDay({days:UInt8}) AS window_start
SELECT {days:UInt8} AS days, if(delta > 0, 'gainer', 'decliner') AS side, domain, now, then
FROM
(
    SELECT n.domain AS domain, n.composite AS now, t.composite AS then, round((now - then) * 10) AS delta
    FROM
    (
        SELECT domain, composite FROM score_history
        WHERE scored_at >= window_start AND scored_at <= window_end
        ORDER BY domain, scored_at DESC, written_at DESC
        LIMIT 1 BY domain
    ) AS n
    INNER JOIN
    (
        SELECT domain, composite FROM score_history
        WHERE scored_at < window_start
        ORDER BY domain, scored_at DESC, written_at DESC
        LIMIT 1 BY domain
    ) AS t ON n.domain = t.domain
    WHERE delta != 0
)
ORDER BY delta > 0 DESC, abs(delta) DESC, domain
LIMIT 20 BY delta > 0
SETTINGS max_bytes_before_external_sort = 1000000000, join_algorithm = 'full_sorting_merge'
FORMAT TSV
