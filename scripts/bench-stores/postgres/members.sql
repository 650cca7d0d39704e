-- The first 201 of each cohort. A bare limit per cohort over one index needs that index first, and building it takes longer.
SELECT sector, geo_scope, profile, domain, company_name, composite, rating
FROM (
    SELECT sector, geo_scope, profile, domain, company_name, composite, rating,
        row_number() OVER (PARTITION BY sector, geo_scope, profile ORDER BY composite DESC, domain) AS place
    FROM latest
    WHERE sector <> 'unknown' AND geo_scope <> 'unknown' AND profile <> 'unclassified'
) AS ranked
WHERE place <= 201
ORDER BY sector, geo_scope, profile, place;
