SELECT count(*), avg(composite), stddev_pop(composite), min(composite), max(composite), quantile_disc(composite, 0.5), quantile_disc(composite, 0.9) FROM latest;
SELECT least(floor(composite / 5), 19) AS bin, count(*) FROM latest GROUP BY bin;
SELECT least(floor(scale_premium), 11) AS bin, count(*) FROM latest GROUP BY bin;
SELECT rating, count(*) FROM latest GROUP BY rating;
SELECT profile, count(*) FROM latest GROUP BY profile
