-- How many companies are below each composite.
SELECT composite, count(*), sum(count(*)) OVER (ORDER BY composite) - count(*) AS below FROM latest GROUP BY composite ORDER BY composite
