#!/bin/sh
# The statistics of a large universe, from nothing and after changes: seeds DOMAINS companies
# with RECORDS records each and runs all batch jobs, then ROUNDS times adds 1 % new records and
# runs them again, and compares what is published with an independent count. All of it in a
# temporary directory and on loopback.
#
#   DOMAINS=10000000 RECORDS=5 ROUNDS=3 scripts/bench-universe.sh
set -eu
cd "$(dirname "$0")/.."
domains=${DOMAINS:-1000000} records=${RECORDS:-5} limit=${LIMIT_SECONDS:-60} memory=${LIMIT_MIB:-6144} rounds=${ROUNDS:-3}
# Some twenty queries cost 0.3 s whatever they are about, so that only large universes have changes for a fifth of a count.
factor=${FACTOR:-$([ "$domains" -ge 10000000 ] && echo 5 || echo 2)}
bin=$PWD/bin/companyscore
dir=$(mktemp -d -p "${TMPDIR:-/tmp}")
engine= redis=
finish() {
	[ -z "$engine" ] || kill "$engine" 2>/dev/null || true
	[ -z "$redis" ] || kill "$redis" 2>/dev/null || true
	[ -z "$engine" ] || wait "$engine" 2>/dev/null || true
	rm -rf "$dir"
}
trap finish EXIT
trap 'exit 1' INT TERM

password=$(head -c 18 /dev/urandom | base64 | tr -d '+/=')
COMPANYSCORE_PASSWORD=$password COMPANYSCORE_ANALYST_PASSWORD=$password "$bin" clickhouse --path "$dir/clickhouse" --listen 127.0.0.1:0 >"$dir/engine.log" 2>&1 &
engine=$!
redis-server --port 0 --unixsocket "$dir/redis.sock" --save "" --dir "$dir" >/dev/null 2>&1 &
redis=$!
i=0
until grep -q '^ready' "$dir/engine.log" && [ -S "$dir/redis.sock" ]; do
	i=$((i + 1))
	[ $i -lt 300 ] || { cat "$dir/engine.log" >&2; exit 1; }
	sleep 0.1
done
address=$(sed -n 's/^ready http:\/\///p' "$dir/engine.log")
CLICKHOUSE_URL=http://companyscore:$password@$address/companyscore REDIS_URL=unix://$dir/redis.sock
export CLICKHOUSE_URL REDIS_URL
ask() { curl -sS --fail-with-body "http://companyscore:$password@$address/?database=companyscore" --data-binary "$1"; }
# Merging what an insert brought is work of the engine, whether there are batches or not.
settle() {
	until [ "$(ask "SELECT count() FROM system.merges")" = 0 ]; do
		sleep 1
	done
}
resident() { awk '/^VmHWM/ { print int($2 / 1024) }' "/proc/$engine/status"; }

echo "\$ companyscore bench seed --domains $domains --records $records"
"$bin" migrate >/dev/null
"$bin" bench seed --domains "$domains" --records "$records" --signals none --quiet
ask "SELECT table, count() AS parts, sum(rows) AS rows, formatReadableSize(sum(bytes_on_disk)) AS size FROM system.parts
	WHERE active AND database = 'companyscore' AND table IN ('score_history', 'score_latest', 'universe_record') GROUP BY table ORDER BY table FORMAT PrettyCompactMonoBlock"
echo 5 >"/proc/$engine/clear_refs" 2>/dev/null || true # the peak so far is that of seeding

settle
echo "\$ companyscore batch --once   # from nothing"
"$bin" batch --once | tee "$dir/first.out"
peak=$(resident)
echo "largest resident size of the engine: $peak MiB"

check() {
	# By domain, over all history, without any of the tables and numbers that the jobs use.
	ask "SELECT count(), sum(h) / count() / 100, sqrt(sum(h * h) / count() - pow(sum(h) / count(), 2)) / 100, min(h) / 100, max(h) / 100
		FROM (SELECT round(argMax(composite, (scored_at, written_at)) * 100) AS h FROM score_history WHERE scored_at <= fromUnixTimestamp64Milli(toInt64($1)) GROUP BY domain)
		SETTINGS max_bytes_before_external_group_by = 2000000000 FORMAT TSV" >"$dir/want"
	"$bin" batch show --json >"$dir/shown.json"
	sed -n 's/.*"count":\([0-9]*\).*"mean":\([0-9.]*\).*"stddev":\([0-9.]*\).*"min":\([0-9.]*\).*"max":\([0-9.]*\).*/\1\t\2\t\3\t\4\t\5/p' "$dir/shown.json" >"$dir/got"
	echo "independent: $(cat "$dir/want")"
	echo "published:   $(cat "$dir/got")"
	awk 'NR == 1 { n = split($0, x, "\t") } NR == 2 { m = split($0, y, "\t") } END {
		if (n != 5 || m != 5) exit 1
		for (i = 1; i <= n; i++) { d = x[i] - y[i]; if (d > 1e-6 || d < -1e-6) exit 1 }
	}' "$dir/want" "$dir/got" || { echo "bench-universe: they differ" >&2; exit 1; }
}
cut() { "$bin" batch show --json | sed -n 's/.*"cut_ms":\([0-9]*\).*/\1/p'; }
check "$(cut)"

took() { sed -n 's/^count took \([0-9.]*\) s.*/\1/p' "$1"; }
echo "1 % new records: one more for every hundredth record, of companies that are others each time, made within the last hour"
new=$((domains * records / 100))
for round in $(seq "$rounds"); do
	ask "INSERT INTO score_history (domain, scored_at, pipeline_version, company_name, country, sector, geo_scope, profile, rating, composite, base, scale_premium,
		team_structure, market_position, momentum_tailwinds, financial_health, momentum_index, completeness_pct, confidence)
		SELECT domain, now64(3) - toIntervalMillisecond(1000 + cityHash64(domain, $round) % 3600000), pipeline_version, company_name, country, sector, geo_scope, profile, rating,
		least(100, round(composite + (cityHash64(domain, 1) % 21) / 10 - 1, 1)), base, scale_premium, team_structure, market_position, momentum_tailwinds, financial_health,
		momentum_index, completeness_pct, confidence
		FROM score_latest WHERE cityHash64(domain, $round + 1) % $domains < $new LIMIT 1 BY domain"
	settle
	echo "\$ companyscore batch --once   # after 1 % new records, round $round of $rounds"
	"$bin" batch --once | tee "$dir/again.out"
	took "$dir/again.out" >>"$dir/rounds.out"
done
check "$(cut)"

awk -v a="$(took "$dir/first.out")" -v b="$(sort -n "$dir/rounds.out" | sed -n "$(((rounds + 1) / 2))p")" -v all="$(sort -n "$dir/rounds.out" | tr '\n' ' ')" \
	-v n="$domains" -v p="$peak" -v l="$limit" -v m="$memory" -v f="$factor" 'BEGIN {
	printf "%d companies: from nothing %.3f s (limit %d), %.2f us a company; peak %d MiB (limit %d); after 1 %% new records %.3f s in the middle of %s: %.1f times cheaper (wanted: %s)\n", n, a, l, a / n * 1e6, p, m, b, all, a / b, f
	exit !(a < l && p < m && a / b >= f)
}'
