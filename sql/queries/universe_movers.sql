-- name: universe_movers
-- The 20 largest rises and the 20 largest falls between the last record before a window and the last within it, one row.
-- Changes are in tenths of a point; of equal ones the first domains. Records of the table come in the order of domain, so
-- that one company at a time is held. params: version String, start_ms Int64, end_ms Int64.
WITH
    groupArraySortedIf(20)((-delta, domain, name, now, then, toString(rating_now), toString(rating_then)), delta > 0) AS up,
    groupArraySortedIf(20)((delta, domain, name, now, then, toString(rating_now), toString(rating_then)), delta < 0) AS down
SELECT
    arrayMap(x -> x.2, up) AS up_domains, arrayMap(x -> x.3, up) AS up_names,
    arrayMap(x -> x.4, up) AS up_now, arrayMap(x -> x.5, up) AS up_then,
    arrayMap(x -> x.6, up) AS up_rating_now, arrayMap(x -> x.7, up) AS up_rating_then,
    arrayMap(x -> x.2, down) AS down_domains, arrayMap(x -> x.3, down) AS down_names,
    arrayMap(x -> x.4, down) AS down_now, arrayMap(x -> x.5, down) AS down_then,
    arrayMap(x -> x.6, down) AS down_rating_now, arrayMap(x -> x.7, down) AS down_rating_then
FROM
(
    SELECT
        domain,
        argMaxIf((company_name, composite, rating), (scored_at, written_at), scored_at >= fromUnixTimestamp64Milli({start_ms:Int64}, 'UTC')) AS last,
        argMaxIf((composite, rating), (scored_at, written_at), scored_at < fromUnixTimestamp64Milli({start_ms:Int64}, 'UTC')) AS before,
        last.1 AS name, last.2 AS now, before.1 AS then, last.3 AS rating_now, before.2 AS rating_then,
        toInt32(round((now - then) * 10)) AS delta
    FROM score_history
    WHERE pipeline_version = {version:String} AND scored_at <= fromUnixTimestamp64Milli({end_ms:Int64}, 'UTC')
    GROUP BY domain
    HAVING delta != 0 AND max(scored_at) >= fromUnixTimestamp64Milli({start_ms:Int64}, 'UTC')
        AND min(scored_at) < fromUnixTimestamp64Milli({start_ms:Int64}, 'UTC')
)
SETTINGS optimize_aggregation_in_order = 1
