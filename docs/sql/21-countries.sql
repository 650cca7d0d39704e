-- In which countries are scores high?
-- Mean composite by country of the headquarters, for countries with at least two companies. Directional scores are left out.
-- Columns: country, companies, mean
SELECT country, count() AS companies, round(avg(composite), 2) AS mean
FROM v1_score_latest
WHERE country != 'unknown' AND confidence >= 'low'
GROUP BY country
HAVING companies >= 2
ORDER BY mean DESC, country
