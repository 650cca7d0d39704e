-- Which companies have at least a hundred open roles?
-- A screen by a raw value: any signal can take its place.
-- Columns: domain, open_roles, composite
SELECT s.domain AS domain, s.raw AS open_roles, l.composite AS composite
FROM v1_signal AS s
INNER JOIN v1_score_latest AS l ON l.domain = s.domain AND l.scored_at = s.scored_at
WHERE s.signal = 'open_roles' AND s.state = 'ok' AND s.raw >= 100
ORDER BY open_roles DESC, domain
LIMIT 100
