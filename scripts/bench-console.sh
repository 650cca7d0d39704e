#!/bin/sh
# Measures the pages of the developer console over a seeded universe: 200 requests of each page one after another, at the client. Fails if the p95 of
# a page is 100 ms or more. DOMAINS companies with RECORDS records each, in a temporary directory; runs on loopback.
set -eu
cd "$(dirname "$0")/.."
domains=${DOMAINS:-1000000} records=${RECORDS:-3} requests=200 limit_ms=100
bin=$PWD/bin/companyscore
dir=$(mktemp -d -p "${TMPDIR:-/tmp}")
up=
finish() {
	[ -z "$up" ] || kill "$up" 2>/dev/null || true
	[ -z "$up" ] || wait "$up" 2>/dev/null || true
	rm -rf "$dir"
}
trap finish EXIT
trap 'exit 1' INT TERM
"$bin" up --data "$dir/data" --listen 127.0.0.1:0 --sources facts --epoch-count 10s --epoch-movers 10s --log-level warn >"$dir/up.log" 2>&1 &
up=$!
until grep -q Ctrl-C "$dir/up.log"; do
	kill -0 "$up" 2>/dev/null || { cat "$dir/up.log" >&2; exit 1; }
	sleep 0.2
done
base=$(sed -n 's/^  api  *//p' "$dir/up.log")
"$bin" bench seed --data "$dir/data" --domains "$domains" --records "$records" --quiet
jar=$dir/cookies
curl -sf -o /dev/null -X POST -H 'Sec-Fetch-Site: same-origin' -c "$jar" "$("$bin" console link --data "$dir/data" --operator 2>/dev/null)"
page() { curl -sf -b "$jar" "$base/console$1"; }
tries=0
until page /universe | grep -q 'Rating mix'; do
	tries=$((tries + 1))
	[ $tries -lt 600 ] || { echo "bench-console: the companies were not counted in 10 minutes" >&2; exit 1; }
	sleep 1
done
company=$(page '/companies?q=north' | grep -o '/companies/[a-z0-9][a-z0-9.-]*' | head -n 1)
echo "$domains companies, $records records each; p50 and p95 of $requests requests in ms, at the client"
worst=0
for path in "" "/companies?q=n" "/companies?q=north" "/companies?q=nobody" "$company" /universe /keys /usage /requests /data /operators /operators/keys /operators/runs /operators/audit; do
	i=0
	while [ $i -lt $requests ]; do
		curl -sf -o /dev/null -w '%{time_total}\n' -b "$jar" "$base/console$path"
		i=$((i + 1))
	done | sort -n >"$dir/times"
	[ "$(wc -l <"$dir/times")" -eq $requests ] || { echo "bench-console: $path failed" >&2; exit 1; }
	awk -v page="/console$path" '{t[NR] = 1000 * $1} END {printf "%-50s %6.1f %6.1f\n", page, t[int(NR / 2)], t[int(NR * 95 / 100)]}' "$dir/times"
	worst=$(awk -v worst="$worst" '{t[NR] = 1000 * $1} END {p = t[int(NR * 95 / 100)]; print (p > worst ? p : worst)}' "$dir/times")
done
awk -v worst="$worst" -v limit="$limit_ms" 'BEGIN {printf "slowest p95 %.1f ms, limit %d ms\n", worst, limit; exit worst >= limit}'
