-- Which companies have at least a hundred open roles?
-- Companies by the value of a signal, with the value of a second signal. Write any other signals in place of these two.
-- Columns: domain, open_roles, employees, composite
SELECT domain, raw['open_roles'] AS open_roles, raw['employee_count'] AS employees, composite
FROM v1_signal_latest
WHERE open_roles >= 100
ORDER BY open_roles DESC, domain
LIMIT 100
