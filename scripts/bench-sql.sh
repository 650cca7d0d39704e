#!/bin/sh
# Times every query of docs/sql at DOMAINS=1000000 companies with five records each, all with signals, as the analyst of an `up` of its own: RUNS=3
# times, one after the other. Prints seconds until the client has the answer (median), rows read and rows of the answer, as v1_query has them. The 880
# shipped companies are imported and scored too, so that queries about signals, runs and apple.com have data.
# Fails if a query fails, or a median exceeds LIMIT_SECONDS=2. Uses a temporary directory and free ports of 127.0.0.1.
set -eu
cd "$(dirname "$0")/.."
. scripts/up.sh
domains=${DOMAINS:-1000000} runs=${RUNS:-3} limit=${LIMIT_SECONDS:-2}

start_up
"$bin" bench seed --quiet --domains "$domains" --records 5 --signals all
"$bin" facts import --quiet examples/companies.csv >/dev/null
"$bin" run start --quiet --from examples/companies.csv --wait >/dev/null
"$bin" batch --once count movers >/dev/null
idle() { [ "$("$bin" sql --operator --format TabSeparated 'SELECT count() FROM system.merges')" = 0 ]; }
until idle; do # a universe in service was not written a minute ago
	sleep 1
done

sql=$("$bin" sql --connection | sed -n 's/^ *URL *//p')
printf 'user = "analyst:%s"\n' "$(cat "$COMPANYSCORE_DATA/analyst-password")" >"$dir/analyst"
chmod 600 "$dir/analyst"
for file in docs/sql/*.sql; do
	name=$(basename "$file" .sql)
	for run in $(seq "$runs"); do
		curl -sS --fail-with-body --max-time 300 -K "$dir/analyst" "$sql/?database=companyscore&query_id=bench-$name-$run" --data-binary "@$file" \
			>"$dir/answer" || { cat "$dir/answer" >&2; echo "$name" >>"$dir/failed"; break; }
		echo "$name" >>"$dir/answered"
	done
done
timed() { [ "$("$bin" sql --operator --format TabSeparated "SELECT count() FROM v1_query WHERE query_id LIKE 'bench-%' AND outcome = 'ok'")" = "$(wc -l <"$dir/answered")" ]; }
await "all statements are in v1_query" timed

echo "$("$bin" sql --format TabSeparated 'SELECT count() FROM v1_score_latest') companies, $("$bin" sql --format TabSeparated 'SELECT count() FROM v1_score_history') records"
"$bin" sql --operator "SELECT replaceRegexpOne(query_id, '^bench-(.*)-[0-9]+\$', '\\\\1') AS query, quantileExact(0.5)(duration_ms) / 1000 AS seconds,
	max(q.read_rows) AS rows_read, max(q.result_rows) AS result_rows, if(seconds > $limit, 'over $limit s', '') AS verdict
	FROM v1_query AS q WHERE query_id LIKE 'bench-%' AND outcome = 'ok' GROUP BY query ORDER BY query" >"$dir/table"
cat "$dir/table"
[ ! -e "$dir/failed" ] && ! grep -q "over $limit s" "$dir/table"
