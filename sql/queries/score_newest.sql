-- name: score_newest
-- When scores of some companies were made, under any pipeline version. The largest time of a company is that of its newest
-- score; that is left to the caller, as grouping costs more than the few rows of parts not merged yet. Companies never
-- scored have no row.
-- params: domains Array(String). columns: domain, scored_at.
SELECT domain, scored_at
FROM score_latest
PREWHERE domain IN {domains:Array(String)}
SETTINGS max_threads = 1
