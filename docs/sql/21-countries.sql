-- In which countries are scores high?
-- Mean composite by country of the headquarters, for countries with at least two companies, with the mean completeness.
-- 21,501 examples: 67 rows.
-- Columns: country, companies, mean, mean_completeness_pct
SELECT country, count() AS companies, round(avg(composite), 2) AS mean, round(avg(completeness_pct), 1) AS mean_completeness_pct
FROM v1_score_latest
WHERE country != 'unknown'
GROUP BY country
HAVING companies >= 2
ORDER BY mean DESC, country
