-- Which companies have at least a hundred open roles?
-- A screen by a raw value, with a second one beside it: any signals can take their places.
-- Columns: domain, open_roles, employees, composite
SELECT domain, raw['open_roles'] AS open_roles, raw['employee_count'] AS employees, composite
FROM v1_signal_latest
WHERE open_roles >= 100
ORDER BY open_roles DESC, domain
LIMIT 100
