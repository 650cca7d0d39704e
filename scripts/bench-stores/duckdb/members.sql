-- The first 201 of each cohort. Faster than a window function.
SELECT sector, geo_scope, profile, arg_min({'domain': domain, 'company_name': company_name, 'composite': composite}, (-composite, domain), 201)
FROM latest
WHERE sector <> 'unknown' AND geo_scope <> 'unknown' AND profile <> 'unclassified'
GROUP BY sector, geo_scope, profile
