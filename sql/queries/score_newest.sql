-- name: score_newest
-- Times of records of companies, of any pipeline version. A company may have several rows while parts are not merged; the caller uses
-- the largest time, because grouping costs more than these rows. Companies without a record have no row.
-- params: domains Array(String). columns: domain, scored_at.
SELECT domain, scored_at
FROM score_latest
PREWHERE domain IN {domains:Array(String)}
SETTINGS max_threads = 1
