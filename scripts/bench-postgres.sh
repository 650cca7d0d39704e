#!/bin/sh
# The same statistics of the same universe on PostgreSQL and here, side by side:
# latest record per company, rank table, distribution, cohorts with their first 201
# members, and movers of three windows. PostgreSQL is set up as someone who knows it
# would: the index that "latest per company" wants, fresh statistics and visibility
# map, room in memory for the whole table, parallel workers, no WAL cost in the way
# of reading. What it builds once and then needs often (latest per company) it may
# keep in a table, whose making counts as a step.
#
#   DOMAINS=1000000 RECORDS=5 RUNS=3 scripts/bench-postgres.sh
#   CLUSTER=1 scripts/bench-postgres.sh    # its table put in the order of that index once, which no new row keeps
#
# Starts a PostgreSQL cluster of its own and an engine and Redis of its own, on sockets
# and loopback, in a temporary directory, and ends them. Needs PostgreSQL 15
# (apt-get install postgresql-15), psql and redis-server.
set -eu
cd "$(dirname "$0")/.."
domains=${DOMAINS:-1000000} records=${RECORDS:-5} runs=${RUNS:-3} factor=${FACTOR:-20} cluster=${CLUSTER:-0}
bin=$PWD/bin/companyscore
pgbin=${PGBIN:-/usr/lib/postgresql/15/bin}
if [ ! -x "$pgbin/initdb" ]; then
	echo "bench-postgres: no PostgreSQL 15 in $pgbin: apt-get install postgresql-15, or set PGBIN" >&2
	exit 1
fi
dir=$(mktemp -d)
chmod 755 "$dir"
mkdir "$dir/pg" "$dir/ours"
as=
if [ "$(id -u)" = 0 ]; then # PostgreSQL refuses to run as root
	chown postgres "$dir/pg"
	as="runuser -u postgres --"
fi
engine= redis=
finish() {
	[ -z "$engine" ] || kill "$engine" 2>/dev/null || true
	[ -z "$redis" ] || kill "$redis" 2>/dev/null || true
	[ ! -d "$dir/pg/data" ] || $as "$pgbin/pg_ctl" -D "$dir/pg/data" -m immediate -w stop >/dev/null 2>&1 || true
	[ -z "$engine" ] || wait "$engine" 2>/dev/null || true
	rm -rf "$dir"
}
trap finish EXIT
trap 'exit 1' INT TERM
now() { date +%s.%N; }
since() { awk -v a="$1" -v b="$(now)" 'BEGIN { printf "%.3f", b - a }'; }

echo "== here"
password=$(head -c 18 /dev/urandom | base64 | tr -d '+/=')
COMPANYSCORE_PASSWORD=$password COMPANYSCORE_ANALYST_PASSWORD=$password "$bin" clickhouse --path "$dir/ours/clickhouse" --listen 127.0.0.1:0 >"$dir/ours/engine.log" 2>&1 &
engine=$!
redis-server --port 0 --unixsocket "$dir/ours/redis.sock" --save "" --dir "$dir/ours" >/dev/null 2>&1 &
redis=$!
i=0
until grep -q '^ready' "$dir/ours/engine.log" && [ -S "$dir/ours/redis.sock" ]; do
	i=$((i + 1))
	[ $i -lt 300 ] || { cat "$dir/ours/engine.log" >&2; exit 1; }
	sleep 0.1
done
address=$(sed -n 's/^ready http:\/\///p' "$dir/ours/engine.log")
CLICKHOUSE_URL=http://companyscore:$password@$address/companyscore REDIS_URL=unix://$dir/ours/redis.sock
export CLICKHOUSE_URL REDIS_URL
ask() { curl -sS --fail-with-body "http://companyscore:$password@$address/?database=companyscore" --data-binary "$1"; }
"$bin" migrate >/dev/null
started=$(now)
"$bin" bench seed --domains "$domains" --records "$records" --signals none --quiet
echo "seeded in $(since "$started") s, materialized views included"

echo "== PostgreSQL"
$as "$pgbin/initdb" -D "$dir/pg/data" -A trust -U bench --locale=C.UTF-8 -E UTF8 >/dev/null
memory=$(awk '/^MemTotal/ { print int($2 / 1024) }' /proc/meminfo)
cores=$(getconf _NPROCESSORS_ONLN)
cat >>"$dir/pg/data/postgresql.conf" <<CONF
listen_addresses = ''
unix_socket_directories = '$dir/pg'
shared_buffers = $((memory / 4))MB
effective_cache_size = $((memory / 2))MB
work_mem = 512MB
hash_mem_multiplier = 2
maintenance_work_mem = 1GB
max_worker_processes = $((cores + 4))
max_parallel_workers = $cores
max_parallel_workers_per_gather = $cores
max_parallel_maintenance_workers = $cores
random_page_cost = 1.1
jit = on
wal_level = minimal
max_wal_senders = 0
max_wal_size = 8GB
synchronous_commit = off
checkpoint_timeout = 30min
CONF
$as "$pgbin/pg_ctl" -D "$dir/pg/data" -w -l "$dir/pg/log" start >/dev/null
pg() { "$pgbin/psql" -h "$dir/pg" -U bench -d postgres -qAtX -v ON_ERROR_STOP=1 "$@"; }
pg -c 'SELECT version()' -c "$(cat scripts/bench-postgres/schema.sql)"
started=$(now)
ask "SELECT domain, scored_at, written_at, company_name, sector, geo_scope, toString(profile), toString(rating), composite, scale_premium,
	team_structure, market_position, momentum_tailwinds, financial_health FROM score_history ORDER BY scored_at FORMAT CSV" |
	pg -c "COPY score_history FROM STDIN WITH (FORMAT csv)"
echo "copied in $(since "$started") s"
started=$(now)
pg -v cluster="$cluster" -f scripts/bench-postgres/index.sql
echo "indexed, vacuumed and analysed in $(since "$started") s (not counted below)"
end=$(ask "SELECT toString(max(scored_at) + 1) FROM score_history")

echo "== both, $runs times, $domains companies with $records records each, $cores cores"
best_pg= best_ours=
lower() { awk -v a="${1:-}" -v b="$2" 'BEGIN { print (a == "" || b < a) ? b : a }'; }
for run in $(seq "$runs"); do
	all=$(now)
	for step in latest rank distribution cohorts members "movers_7 days" "movers_30 days" "movers_90 days"; do
		case $step in
		movers_*) file=movers window=${step#movers_} ;;
		*) file=$step window= ;;
		esac
		started=$(now)
		pg -v end="$end" -v window="$window" -f "scripts/bench-postgres/$file.sql" >"$dir/pg/$step.out"
		printf 'run %s  PostgreSQL %-13s %8s s\n' "$run" "$step" "$(since "$started")"
	done
	total=$(since "$all")
	printf 'run %s  PostgreSQL %-13s %8s s\n' "$run" together "$total"
	best_pg=$(lower "$best_pg" "$total")
	redis-cli -s "$dir/ours/redis.sock" flushall >/dev/null # nothing is published, so that everything is counted
	"$bin" batch --once >"$dir/ours/batch.out"
	sed "s/^/run $run  here       /" "$dir/ours/batch.out"
	total=$(sed -n 's/^count took \([0-9.]*\) s.*/\1/p' "$dir/ours/batch.out")
	best_ours=$(lower "$best_ours" "$total")
done

echo "== do they agree?"
ours=$(ask "SELECT count(), avg(composite) / 100, stddevPop(composite) / 100, min(composite) / 100, max(composite) / 100
	FROM universe_company WHERE generation = (SELECT max(generation) FROM universe_company) FORMAT TSV")
theirs=$(awk -F'|' 'NR == 1 { printf "%s\t%s\t%s\t%s\t%s", $1, $2, $5, $6, $7 }' "$dir/pg/distribution.out")
echo "companies, mean, standard deviation, least, most"
echo "here:       $ours"
echo "PostgreSQL: $theirs"
awk -v a="$ours" -v b="$theirs" 'BEGIN {
	n = split(a, x, "\t"); split(b, y, "\t")
	for (i = 1; i <= n; i++) { d = x[i] - y[i]; if (d > 1e-6 || d < -1e-6) exit 1 }
}' || { echo "bench-postgres: they do not agree" >&2; exit 1; }

awk -v p="$best_pg" -v o="$best_ours" -v f="$factor" -v c="$cluster" 'BEGIN {
	printf "== best of each: PostgreSQL%s %.3f s, here %.3f s: %.1f times as fast (wanted: %s)\n", c ? ", table in order," : ", table as it grew,", p, o, p / o, f
	exit !(p / o >= f)
}'
