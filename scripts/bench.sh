#!/bin/sh
# Runs one of the measurements of `make bench-...` with its own `up`, in a temporary directory
# and on free ports of 127.0.0.1, and stops all processes that it started. Further arguments
# are passed to the measuring command.
set -eu
cd "$(dirname "$0")/.."
what=${1:?"usage: scripts/bench.sh hot|mixed|resident|conditional|analytics|wrk|k6 [FLAGS of bench run, wrk or k6]"}
shift
. scripts/up.sh
out=${OUT:-$PWD/bench-results}
mkdir -p "$out"

# One per cent of 10,000 calls per second is 100 cold calls per second. The breaker of a key
# (200 per hour) would stop them after two seconds, so it is raised here. An enterprise
# account has no monthly budget.
cat >"$dir/tiers.yaml" <<'YAML'
breakers:
  cold_per_key: {limit: 1000000, window: 1h}
YAML
schedules=
[ "$what" != conditional ] || schedules="--epoch-count 24h" # no epoch ends meanwhile, unless at midnight
[ "$what" != analytics ] || for job in count movers refresh housekeeping spreads inbox; do
	schedules="$schedules --schedule-$job off" # the measurement counts by itself
done
# shellcheck disable=SC2086 # words
start_up --tiers "$dir/tiers.yaml" $schedules

"$bin" bench seed --keys 4 --tier enterprise --keys-file "$dir/keys" >"$dir/keys.log"
key=$(head -n 1 "$dir/keys")

examples() { # the 880 companies that ship with the project, scored
	"$bin" facts import --quiet examples/companies.csv
	"$bin" run start --quiet --from examples/companies.csv --wait
}

run() { # NAME FLAGS: one run, its report as JSON and HTML
	name=$1
	shift
	echo "\$ companyscore bench run $*"
	"$bin" bench run --keys-file "$dir/keys" --json "$out/$name.json" --html "$out/$name.html" "$@"
}

case $what in
hot)
	examples
	# Two requests are in flight on average, so sixteen connections are enough. With more, the
	# server wakes up for fewer requests at a time.
	run hot --scenario hot --domains-file examples/companies.csv --rate 20000 --connections 16 --duration 30s --slo 'p99<2ms' "$@"
	;;
mixed)
	examples
	run mixed --scenario mixed --domains-file examples/companies.csv --rate "${RATE:-10000}" --cold-share 0.01 --poll-every 2s \
		--duration "${MINUTES:-10}m" --drain 30s --slo 'p99<20ms' "$@"
	;;
resident)
	n=${COMPANIES:-1000000}
	"$bin" bench seed --domains "$n" --records 1 --signals none
	run resident --scenario resident --domains "$n" --rate "${RATE:-10000}" --duration 60s "$@"
	;;
conditional)
	n=${COMPANIES:-10000} seconds=60
	"$bin" bench seed --domains "$n" --records 2 --signals none
	"$bin" batch --once count movers
	await "$n companies are served" serves "$n"
	# The account of another key starts runs, so that the universe grows.
	sed 1d "$dir/keys" >"$dir/cold-keys"
	"$bin" bench run --quiet --keys-file "$dir/cold-keys" --scenario cold-start --rate 100 --warmup 0s --duration $((seconds + 5))s \
		--poll-every 2s --json "$out/cold.json" >"$dir/cold.log" 2>&1 &
	cold=$!
	also $cold
	charged() { get /v1/usage | sed 's/.*"total_calls":\([0-9]*\).*/\1/'; }
	before=$(charged)
	head -n 1 "$dir/keys" >"$dir/key"
	"$bin" bench run --keys-file "$dir/key" --scenario conditional --domains "$n" --rate "${RATE:-2000}" --warmup 0s --duration ${seconds}s \
		--json "$out/conditional.json" "$@" || status=$?
	after=$(charged)
	wait $cold || cat "$dir/cold.log"
	count() { # CLASS: answers in the report
		sed -n '/"name": "'"$1"'"/,/"count"/s/.*"count": \([0-9]*\).*/\1/p' "$out/conditional.json" | head -n 1 | grep . || echo 0
	}
	unchanged=$(count "score 304") again=0 first=0
	for tier in l1 redis clickhouse; do
		again=$((again + $(count "score $tier"))) first=$((first + $(count "first read $tier")))
	done
	echo "$("$bin" sql --format TabSeparated 'SELECT count() FROM v1_score_latest') companies at the end, $n at the beginning"
	echo "of $((unchanged + again)) conditional reads of unchanged companies $unchanged were answered 304; $((after - before)) calls charged for $((first + again)) bodies"
	[ $((100 * unchanged)) -ge $((99 * (unchanged + again))) ] && [ $((after - before)) -eq $((first + again)) ] || { echo "not met" >&2; exit 1; }
	exit "${status:-0}"
	;;
analytics)
	n=${DOMAINS:-1000000}
	"$bin" bench seed --domains "$n" --records 5 --signals none
	sleep 61 # a count names the records of its last minute: a universe in service has few, this one a million
	"$bin" batch --once count movers
	await "$n companies are served" serves "$n"
	while "$bin" batch --once --nice 10 count movers >>"$dir/jobs" 2>&1; do :; done & # again and again meanwhile
	counting=$!
	run analytics --scenario analytics --domains "$n" --rate "${RATE:-2000}" --connections 1024 --duration 30s --priority real-time \
		--slo 'distribution table:p99<5ms' --slo 'movers table:p99<5ms' --slo 'cohort l1:p99<5ms' "$@" || status=$?
	kill $counting
	echo "meanwhile all companies were counted $(grep -c '^count' "$dir/jobs") times, and movers found $(grep -c '^movers' "$dir/jobs") times"
	exit "${status:-0}"
	;;
wrk)
	command -v wrk >/dev/null 2>&1 || {
		echo "wrk is not installed (Debian, Ubuntu: apt-get install wrk)" >&2
		exit 1
	}
	examples
	COMPANYSCORE_KEY=$key "$bin" score apple.com >/dev/null
	echo "\$ wrk -t1 -c64 -d15s --latency -s scripts/load/hot.lua $url"
	COMPANYSCORE_KEY=$key wrk -t1 -c64 -d15s --latency -s scripts/load/hot.lua "$url" "$@"
	run hot-saturated --scenario hot --saturate --domains-file examples/companies.csv
	;;
k6)
	examples
	echo "\$ k6 run -e RATE=${RATE:-2000} scripts/load/hot.js"
	COMPANYSCORE_KEY=$key "${K6:-$PWD/bin/k6}" run --no-usage-report -e "URL=$url" -e "RATE=${RATE:-2000}" scripts/load/hot.js "$@"
	run hot-k6-rate --scenario hot --rate "${RATE:-2000}" --domains-file examples/companies.csv --slo 'p99<2ms'
	;;
*)
	echo "unknown measurement $what" >&2
	exit 2
	;;
esac
