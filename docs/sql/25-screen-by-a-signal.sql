-- Which companies have at least 100,000 employees?
-- Companies by the value of a signal, with the value of a second signal. Write any other signals in place of these two.
-- 21,501 examples: 51 rows.
-- Columns: domain, employees, revenue_usd, composite
SELECT domain, raw['employee_count'] AS employees, raw['revenue_latest_usd'] AS revenue_usd, composite
FROM v1_signal_latest
WHERE employees >= 100000
ORDER BY employees DESC, domain
LIMIT 100
