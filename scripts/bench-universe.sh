#!/bin/sh
# The statistics of a large universe: seeds DOMAINS companies with RECORDS records each,
# then measures the count job, the count job right after 1 % new records in 20 inserts, and the
# movers job, RUNS times each, and the memory of the engine. It compares the published statistics
# with a slow computation over all history: all companies, every cohort with its leaderboard, and
# all movers. Runs in a temporary directory and on loopback.
#
#   DOMAINS=10000000 RECORDS=5 RUNS=3 scripts/bench-universe.sh
#
# Fails if a median exceeds COUNT_MAX, FRESH_MAX or MOVERS_MAX seconds, the engine is above MEMORY_MAX
# MiB, or a statistic differs.
set -eu
cd "$(dirname "$0")/.."
domains=${DOMAINS:-1000000} records=${RECORDS:-5} runs=${RUNS:-3}
default() { awk -v n="$domains" -v small="$1" -v ten="$2" 'BEGIN { print (n >= 1e7 ? ten * n / 1e7 : small * (n > 1e6 ? n / 1e6 : 1)) }'; }
count_max=${COUNT_MAX:-$(default 0.4 3)} fresh_max=${FRESH_MAX:-$(default 0.6 4)} movers_max=${MOVERS_MAX:-$(default 0.8 6)} memory_max=${MEMORY_MAX:-2048}
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
ask() { curl -sS --fail-with-body "http://companyscore:$password@$address/?database=companyscore_private${2:-}" --data-binary "$1"; }
settle() { # merges are work of the engine, whether there are batch jobs or not
	until [ "$(ask "SELECT count() FROM system.merges")" = 0 ]; do
		sleep 1
	done
}
age() { # a count lists the records of its last minute; a settled universe has none
	until [ "$(ask "SELECT max(written_at) < now64(3) - toIntervalSecond(61) FROM score_latest")" = 1 ]; do
		sleep 1
	done
}
batch() { "$bin" batch --once "$1" | tee "$dir/out"; sed -n "s/^$1 took \([0-9.]*\) s.*/\1/p" "$dir/out" >>"$dir/$2"; }
median() { sort -n "$dir/$1" | sed -n "$(((runs + 1) / 2))p"; }

echo "\$ companyscore bench seed --domains $domains --records $records"
"$bin" migrate >/dev/null
"$bin" bench seed --domains "$domains" --records "$records" --signals newest --quiet
settle
age
ask "SELECT table, count() AS parts, sum(rows) AS rows, formatReadableSize(sum(bytes_on_disk)) AS size FROM system.parts
	WHERE active AND database = 'companyscore' AND table IN ('score_history', 'score_latest') GROUP BY table ORDER BY table FORMAT PrettyCompactMonoBlock"
echo 5 >"/proc/$engine/clear_refs" 2>/dev/null || true # reset the peak, which is that of seeding
for run in $(seq "$runs"); do
	batch count settled
	batch movers moved
done

new=$((domains * records / 100 / 20)) # for each insert
for run in $(seq "$runs"); do
	echo "1 % new records in 20 inserts, of other companies each time, scored within the last hour ($run of $runs)"
	for slice in $(seq 20); do
		ask "INSERT INTO score_history (domain, scored_at, pipeline_version, company_name, country, sector, geo_scope, profile, rating, composite, interval_low, interval_high, expected_composite, base, scale_premium,
			team_structure, market_position, momentum_tailwinds, financial_health, momentum_index, completeness_pct, confidence,
			\`signal.id\`, \`signal.state\`, \`signal.raw\`, \`signal.score\`, \`signal.share\`, \`signal.source\`)
			SELECT domain, now64(3) - toIntervalMillisecond(1000 + cityHash64(domain, $run) % 3600000), pipeline_version, company_name, country, sector, geo_scope, profile, rating,
			least(100, round(composite + (cityHash64(domain, 1) % 21) / 10 - 1, 1)), interval_low, interval_high, expected_composite, base, scale_premium, team_structure, market_position, momentum_tailwinds, financial_health,
			momentum_index, completeness_pct, confidence, \`signal.id\`, \`signal.state\`, \`signal.raw\`, \`signal.score\`, \`signal.share\`, \`signal.source\`
			FROM score_latest WHERE intDiv(cityHash64(domain, $run, 'new') % $domains, $new) = $slice - 1 LIMIT 1 BY domain"
	done
	batch count fresh
	settle
done
batch movers last
peak=$(awk '/^VmHWM/ { print int($2 / 1024) }' "/proc/$engine/status")

echo "slow computation over all history, without score_latest, FINAL and the queries of the jobs"
"$bin" batch --once count >/dev/null
"$bin" batch show --output json >"$dir/shown.json"
ask "$(cat scripts/bench-universe/newest.sql)"
ask "$(cat scripts/bench-universe/cohorts.sql)" >"$dir/cohorts.tsv"
end=$(sed -n 's/.*"30d":{"Start":"[^"]*","End":"\([^"]*\)".*/\1/p' "$dir/shown.json")
for days in 7 30 90; do
	ask "$(cat scripts/bench-universe/movers.sql)" "&param_days=$days&param_end=$end"
done >"$dir/movers.tsv"
node scripts/bench-universe/compare.mjs "$dir/shown.json" "$dir/cohorts.tsv" "$dir/movers.tsv"

awk -v n="$domains" -v c="$(median settled)" -v f="$(median fresh)" -v m="$(median moved)" -v p="$peak" \
	-v cm="$count_max" -v fm="$fresh_max" -v mm="$movers_max" -v pm="$memory_max" 'BEGIN {
	printf "%d companies, medians: count %.3f s (limit %s), count after 1 %% new records %.3f s (limit %s), movers %.3f s (limit %s); engine %d MiB (limit %d)\n", n, c, cm, f, fm, m, mm, p, pm
	exit !(c <= cm && f <= fm && m <= mm && p < pm)
}'
