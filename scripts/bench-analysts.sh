#!/bin/sh
# Two analysts of an `up` of its own keep 20 heavy statements in flight, ann 15 and bob 5, for DURATION=30s, while RATE=1000 hot reads a second are
# sent to the API. The statements are queries of docs/sql about all DOMAINS=300000 companies with five records each.
# Prints the share of each analyst in slot time and statements, as v1_query has them, and the latency of hot reads without and with the analysts.
# Fails if a share of slot time is not within 40 to 60 %, a statement failed, or the p99 of hot reads beside the analysts is 10 ms or more.
# Uses a temporary directory and free ports of 127.0.0.1.
set -eu
cd "$(dirname "$0")/.."
. scripts/up.sh
out=${OUT:-$PWD/bench-results}
mkdir -p "$out"

start_up
"$bin" bench seed --quiet --domains "${DOMAINS:-300000}" --records 5 --signals none
"$bin" facts import --quiet examples/companies.csv >/dev/null
"$bin" run start --quiet --from examples/companies.csv --wait >/dev/null
"$bin" bench seed --keys 4 --tier enterprise --keys-file "$dir/keys" >/dev/null
idle() { [ "$("$bin" sql --operator --format TabSeparated 'SELECT count() FROM system.merges')" = 0 ]; }
until idle; do
	sleep 1
done

sql=$("$bin" sql --connection | sed -n 's/^ *URL *//p')
for analyst in ann bob; do
	"$bin" analyst create $analyst | awk '/^user/ {user = $2} /^password/ {printf "user = \"%s:%s\"\n", user, $2}' >"$dir/$analyst"
	chmod 600 "$dir/$analyst"
done

keep_asking() { # ANALYST: one statement after the other, until the file "stop" is there
	while :; do
		for query in docs/sql/14-*.sql docs/sql/16-*.sql docs/sql/17-*.sql docs/sql/30-*.sql docs/sql/31-*.sql; do
			[ ! -e "$dir/stop" ] || return 0
			curl -sS --fail-with-body --max-time 300 -K "$dir/$1" "$sql/?database=companyscore" --data-binary "@$query" -o /dev/null || echo "$query of $1" >>"$dir/failed"
			echo "$1" >>"$dir/asked"
		done
	done
}
hot() { # NAME: hot reads at a fixed rate, their latency as one line
	"$bin" bench run --quiet --keys-file "$dir/keys" --scenario hot --domains-file examples/companies.csv --rate "${RATE:-1000}" --connections 16 \
		--duration "${DURATION:-30s}" --priority real-time --slo 'p99<10ms' --json "$out/$1.json" >"$dir/$1.log" || cat "$dir/$1.log"
	node -e 'const r = JSON.parse(require("fs").readFileSync(process.argv[1])), hot = r.classes.find(c => c.name === "score l1"), ms = us => (us / 1000).toFixed(2) + " ms";
		console.log(`${process.argv[2]}: p50 ${ms(hot.latency.p50_us)}, p99 ${ms(hot.latency.p99_us)}, ${hot.count} reads, ${r.verdict.status} ${r.verdict.reasons.join(", ")}`);
		process.exit(r.verdict.status === "VALID" && r.slo.every(s => s.met) ? 0 : 1)' "$out/$1.json" "$2"
}

hot analysts-without "hot reads without analysts" || alone=missed
begin=$(date +%s%3N)
for analyst in ann ann ann ann ann ann ann ann ann ann ann ann ann ann ann bob bob bob bob bob; do
	keep_asking $analyst &
	askers="${askers:-} $!"
	also $!
done
hot analysts-with "hot reads beside 20 heavy statements" || missed=1
end=$(date +%s%3N)
touch "$dir/stop"
# shellcheck disable=SC2086 # words
wait $askers
logged() { [ "$("$bin" sql --operator --format TabSeparated "SELECT count() FROM v1_query WHERE analyst IN ('ann', 'bob')")" = "$(wc -l <"$dir/asked")" ]; }
await "all statements are in v1_query" logged

# Statements that ended after the measurement are left out: ann had more of them in flight.
"$bin" sql --operator "WITH duration_ms - wait_ms AS slot_ms
	SELECT analyst, count() AS statements, round(statements / sum(statements) OVER () * 100, 1) AS percent_of_statements,
	round(sum(slot_ms) / 1000, 1) AS slot_s, round(slot_s / sum(slot_s) OVER () * 100, 1) AS percent_of_slot_time,
	quantileExact(0.5)(slot_ms) / 1000 AS median_s, quantileExact(0.5)(wait_ms) / 1000 AS median_wait_s,
	if(percent_of_slot_time BETWEEN 40 AND 60, 'its share', 'not its share') AS verdict
	FROM v1_query WHERE analyst IN ('ann', 'bob') AND outcome = 'ok'
	AND toUnixTimestamp64Milli(started_at) >= $begin AND toUnixTimestamp64Milli(started_at) + duration_ms <= $end GROUP BY analyst ORDER BY analyst" >"$dir/shares"
cat "$dir/shares"
status=0
not_met() { echo "not met: $1" >&2; status=1; }
[ -z "${missed:-}" ] || not_met "hot reads beside the analysts have the verdict VALID and a p99 below 10 ms"
[ -z "${missed:-}" ] || [ -z "${alone:-}" ] || echo "hot reads missed it without analysts too: the machine is busy with something else" >&2
[ "$(grep -c ' its share' "$dir/shares")" = 2 ] || not_met "each analyst has 40 to 60 % of the slot time"
[ ! -e "$dir/failed" ] || not_met "no statement failed: $(sort "$dir/failed" | uniq -c | head -n 3)"
[ $status = 1 ] || echo "met: each analyst has 40 to 60 % of the slot time, and the p99 of hot reads is below 10 ms"
exit $status
