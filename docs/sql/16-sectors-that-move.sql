-- Which sectors rose, and which fell, within 30 days?
-- For each sector how many companies rose and fell, and the mean change of those that changed.
-- Columns: sector, rose, fell, mean_change
SELECT sector, countIf(delta > 0) AS rose, countIf(delta < 0) AS fell, round(avg(delta), 2) AS mean_change
FROM v1_mover
WHERE window_days = 30 AND changed
GROUP BY sector
ORDER BY mean_change DESC, sector
