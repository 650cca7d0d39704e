#!/bin/sh
# The watch ends the engine of an `up` of its own while ANALYSTS=20 analysts run statements, and RATE=1000 hot reads and RUNS=100 cold runs a second go on
# for LENGTH=60 seconds. A statement of the operator takes memory that the engine does not count, above the 1 GB that its process may have.
# Prints the hot reads and their errors, the runs that were started and completed, and the longest time without an answer of the engine.
# Fails if a hot read failed, a run did not complete, or the engine did not end.
# Uses a temporary directory and free ports of 127.0.0.1.
set -eu
cd "$(dirname "$0")/.."
. scripts/up.sh
length=${LENGTH:-60} rate=${RATE:-1000} runs=${RUNS:-100} analysts=${ANALYSTS:-20}

start_up --clickhouse-memory 1024 --log-level warn
"$bin" facts import --quiet examples/companies.csv >/dev/null
"$bin" run start --quiet --from examples/companies.csv --wait >/dev/null
"$bin" bench seed --keys 4 --tier enterprise --keys-file "$dir/keys" >/dev/null
sql=$("$bin" sql --connection | sed -n 's/^ *URL *//p')
seq -f 'analyst%.0f' "$analysts" >"$dir/analysts"
for analyst in probe $(cat "$dir/analysts"); do
	"$bin" analyst create "$analyst" | awk '/^user/ {user = $2} /^password/ {printf "user = \"%s:%s\"\n", user, $2}' >"$dir/$analyst"
done
ask() { # ANALYST CURL-ARGUMENTS
	config=$dir/$1
	shift
	curl -sS --fail -K "$config" "$sql/?database=companyscore" -o /dev/null "$@" 2>/dev/null
}

keep_asking() { # ANALYST: until the file "stop" is there
	until [ -e "$dir/stop" ]; do
		ask "$1" --max-time 300 --data-binary @docs/sql/20-buckets-by-sector.sql || sleep 0.2
	done
}
keep_probing() { # a line for each answer, with its time
	until [ -e "$dir/stop" ]; do
		ask probe --max-time 5 --data-binary 'SELECT 1' && date +%s%3N >>"$dir/answers"
		sleep 0.02
	done
}
keep_starting() { # a group of runs each second
	for second in $(seq "$length"); do
		seq -f "made-up-$second-%.0f.com" "$runs" >"$dir/group"
		cat "$dir/group" >>"$dir/domains"
		# While the engine is away the command may fail after some of the runs; what it repeats joins runs in flight.
		until "$bin" run start --quiet --from "$dir/group" >/dev/null 2>>"$dir/start.log"; do
			sleep 0.1
		done
		sleep 0.7
	done
}

others=
for analyst in $(cat "$dir/analysts"); do
	keep_asking "$analyst" &
	others="$others $!"
	also $!
done
keep_probing &
others="$others $!"
also $!
keep_starting &
starter=$!
also $starter
"$bin" bench run --quiet --keys-file "$dir/keys" --scenario hot --domains-file examples/companies.csv --rate "$rate" --connections 16 \
	--duration "${length}s" --json "$dir/hot.json" >"$dir/hot.log" 2>&1 &
hot=$!
also $hot

sleep "$((length / 3))"
ended=no
"$bin" sql --operator "SELECT length(polygonsUnionCartesian([[arrayMap(x -> (cos(x * 2.39), sin(x * 2.39)), range(8000))]],
	[[arrayMap(x -> (cos(x * 1.7), sin(x * 1.7)), range(8000))]]))" >/dev/null 2>&1 || ended=yes
wait $hot || true # its verdict is about latency
wait $starter
touch "$dir/stop"
# shellcheck disable=SC2086 # words
wait $others
"$bin" run start --quiet --from "$dir/domains" --wait >/dev/null # waits for runs in flight, and starts none that are complete
grep -m 1 'the engine has ended' "$dir/up.log" || ended=no

status=0
not_met() { echo "not met: $1" >&2; status=1; }
[ $ended = yes ] || not_met "the watch ends the engine"
node -e 'const r = JSON.parse(require("fs").readFileSync(process.argv[1])), c = r.classes.map(c => `${c.name}: ${c.count} reads, ${c.errors ?? 0} errors, longest ${(c.latency.max_us / 1000).toFixed(0)} ms`);
	console.log(c.join("\n")); console.log(`verdict: ${r.verdict.status} ${r.verdict.reasons.join(", ")}`);' "$dir/hot.json"
awk 'NR > 1 && $1 - last > gap {gap = $1 - last} {last = $1} END {printf "longest time without an answer of the engine: %.1f s (%d answers)\n", gap / 1000, NR}' "$dir/answers"
complete=$("$bin" sql --operator --format TabSeparated "SELECT uniqExact(domain) FROM score_latest WHERE domain LIKE 'made-up-%'")
started=$(sort -u "$dir/domains" | wc -l)
echo "runs: $started companies started, $complete complete"
[ "$complete" = "$started" ] || not_met "all runs complete"
exit $status
