-- name: universe_deltas
-- How many companies changed by how many hundredths within each window, of those that changed, after a count of everything.
-- params: generation UInt64, note UInt64. returns: window 0 to 2 for 7, 30 and 90 days.
SELECT 0 AS window, delta_7d AS delta, count() AS companies FROM universe_company
WHERE generation = {generation:UInt64} AND position = {note:UInt64} AND delta_7d != 0 GROUP BY delta
UNION ALL
SELECT 1, delta_30d AS delta, count() FROM universe_company
WHERE generation = {generation:UInt64} AND position = {note:UInt64} AND delta_30d != 0 GROUP BY delta
UNION ALL
SELECT 2, delta_90d AS delta, count() FROM universe_company
WHERE generation = {generation:UInt64} AND position = {note:UInt64} AND delta_90d != 0 GROUP BY delta
