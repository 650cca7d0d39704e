-- Which sectors rose, and which fell, within 30 days?
-- For each sector how many companies rose and fell, and the mean change of those that changed. Directional scores are left out.
-- 21,501 examples: no rows, since each company has one record.
-- With 300 companies of `companyscore bench seed --domains 300 --append`: 22 rows.
-- Columns: sector, rose, fell, mean_change
SELECT sector, countIf(delta > 0) AS rose, countIf(delta < 0) AS fell, round(avg(delta), 2) AS mean_change
FROM v1_mover
WHERE window_days = 30 AND changed AND confidence_now >= 'low' AND confidence_then >= 'low'
GROUP BY sector
ORDER BY mean_change DESC, sector
