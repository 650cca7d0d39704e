#!/bin/sh
# Runs one of the measurements of `make bench-...` with its own `up`, in a temporary directory
# and on free ports of 127.0.0.1, and stops all processes that it started. Further arguments
# are passed to the measuring command.
set -eu
cd "$(dirname "$0")/.."
what=${1:?"usage: scripts/bench.sh hot|mixed|resident|analytics|wrk|k6 [FLAGS of bench run, wrk or k6]"}
shift
bin=$PWD/bin/companyscore
out=${OUT:-$PWD/bench-results}
mkdir -p "$out"
dir=$(mktemp -d)
up=
finish() {
	if [ -n "$up" ]; then
		kill "$up" 2>/dev/null || true
		wait "$up" 2>/dev/null || true
	fi
	rm -rf "$dir"
}
trap finish EXIT
trap 'exit 1' INT TERM

# One per cent of 10,000 calls per second is 100 cold calls per second. The breaker of a key
# (200 per hour) would stop them after two seconds, so it is raised here. An enterprise
# account has no monthly budget.
cat >"$dir/tiers.yaml" <<'YAML'
breakers:
  cold_per_key: {limit: 1000000, window: 1h}
YAML
schedules=
[ "$what" != analytics ] || for job in count movers refresh housekeeping spreads; do
	schedules="$schedules --schedule-$job off" # the measurement counts by itself
done
# shellcheck disable=SC2086 # words
"$bin" up --data "$dir/data" --listen 127.0.0.1:0 --sources facts --tiers "$dir/tiers.yaml" --log-level error $schedules >"$dir/up.log" 2>&1 &
up=$!
i=0
until grep -qs "^ready" "$dir/up.log"; do
	i=$((i + 1))
	if [ $i -gt 300 ] || ! kill -0 "$up" 2>/dev/null; then
		cat "$dir/up.log" >&2
		exit 1
	fi
	sleep 0.1
done
url=$(sed -n 's/^ready \([^ ]*\) .*/\1/p' "$dir/up.log")
export COMPANYSCORE_DATA="$dir/data"

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
analytics)
	n=${DOMAINS:-1000000}
	"$bin" bench seed --domains "$n" --records 5 --signals none
	sleep 61 # a count names the records of its last minute: a universe in service has few, this one a million
	"$bin" batch --once count movers
	i=0
	until curl -sS -H "X-API-Key: $key" "$url/v1/distribution" | grep -q ":$n[,}]"; do # servers have it
		i=$((i + 1))
		[ $i -lt 100 ] || { echo "bench: $n companies are not served" >&2; exit 1; }
		sleep 0.1
	done
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
	"$bin" score --key "$key" apple.com >/dev/null
	echo "\$ wrk -t1 -c64 -d15s --latency -s scripts/load/hot.lua $url"
	API_KEY=$key wrk -t1 -c64 -d15s --latency -s scripts/load/hot.lua "$url" "$@"
	run hot-saturated --scenario hot --saturate --domains-file examples/companies.csv
	;;
k6)
	examples
	echo "\$ k6 run -e RATE=${RATE:-2000} scripts/load/hot.js"
	"${K6:-$PWD/bin/k6}" run --no-usage-report -e "URL=$url" -e "API_KEY=$key" -e "RATE=${RATE:-2000}" scripts/load/hot.js "$@"
	run hot-k6-rate --scenario hot --rate "${RATE:-2000}" --domains-file examples/companies.csv --slo 'p99<2ms'
	;;
*)
	echo "unknown measurement $what" >&2
	exit 2
	;;
esac
