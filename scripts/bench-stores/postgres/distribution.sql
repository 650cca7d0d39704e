SELECT count(*), avg(composite), percentile_disc(0.5) WITHIN GROUP (ORDER BY composite), percentile_disc(0.9) WITHIN GROUP (ORDER BY composite),
    stddev_pop(composite), min(composite), max(composite)
FROM latest;
SELECT least(floor(composite / 5), 19) AS bin, count(*) FROM latest GROUP BY bin ORDER BY bin;
SELECT least(floor(scale_premium), 11) AS bin, count(*) FROM latest GROUP BY bin ORDER BY bin;
SELECT rating, count(*) FROM latest GROUP BY rating ORDER BY rating;
SELECT profile, count(*) FROM latest GROUP BY profile ORDER BY profile;
