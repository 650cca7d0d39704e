#!/bin/sh
# The same statistics of the same universe here, in PostgreSQL 15 and in DuckDB, in turns: newest record of each
# company, rank table, distribution, cohorts with their first 201 members, and movers of three windows.
#
# PostgreSQL is tuned: an index for the newest record of each company, fresh statistics and visibility map, memory for
# the whole table, parallel workers, no WAL cost during reads. DuckDB has its own table, all threads and all memory.
# Both may store the newest records in a table; its creation is a measured step. Here the count job and the movers job
# are measured, with publication.
#
#   DOMAINS=1000000 RECORDS=5 RUNS=3 scripts/bench-stores.sh
#   CLUSTER=1 scripts/bench-stores.sh    # cluster PostgreSQL's table by that index; new rows do not keep the order
#
# Starts servers on sockets and loopback in a temporary directory, and stops them. Installs PostgreSQL 15 if it is
# missing and the user is root, and DuckDB under .deps/. Fails if results differ, or if the best time here is not
# POSTGRES_FACTOR times as fast as that of PostgreSQL and DUCKDB_FACTOR times as fast as that of DuckDB.
set -eu
cd "$(dirname "$0")/.."
domains=${DOMAINS:-1000000} records=${RECORDS:-5} cluster=${CLUSTER:-0}
duckdb=1.5.6-r.1
bin=$PWD/bin/companyscore
pgbin=${PGBIN:-/usr/lib/postgresql/15/bin}
if [ ! -x "$pgbin/initdb" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	echo "bench-stores: installing postgresql-15 with apt-get"
	mkdir -p /etc/postgresql-common # the package makes no cluster of its own
	[ -e /etc/postgresql-common/createcluster.conf ] || echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql-15 >/dev/null
fi
if [ ! -x "$pgbin/initdb" ]; then
	echo "bench-stores: no PostgreSQL 15 in $pgbin: apt-get install postgresql-15, or set PGBIN" >&2
	exit 1
fi
modules=$PWD/.deps/duckdb-$duckdb
[ -d "$modules/node_modules/@duckdb/node-api" ] ||
	npm install --prefix "$modules" --no-audit --no-fund --loglevel=error "@duckdb/node-api@$duckdb" >/dev/null

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
since() { awk -v a="$1" -v b="$(now)" 'BEGIN { printf "%.1f", b - a }'; }

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
ask() { curl -sS --fail-with-body "http://companyscore:$password@$address/?database=companyscore_private" --data-binary "$1"; }
"$bin" migrate >/dev/null
started=$(now)
"$bin" bench seed --domains "$domains" --records "$records" --signals none --quiet
echo "seeded in $(since "$started") s, materialized view included"
# In the order of arrival, as in a table that grows by new records.
columns="domain, scored_at, written_at, company_name, toString(sector) AS sector, toString(geo_scope) AS geo_scope, toString(profile) AS profile, toString(rating) AS rating,
	composite, scale_premium, team_structure, market_position, momentum_tailwinds, financial_health FROM score_history ORDER BY scored_at SETTINGS max_bytes_before_external_sort = 1000000000"
end=$(ask "SELECT toString(max(scored_at) + 1) FROM score_history")

echo "== DuckDB $duckdb"
started=$(now)
ask "SELECT $columns FORMAT Parquet" >"$dir/records.parquet"
MODULES=$modules node scripts/bench-stores/run.mjs load "$dir/duck.db" "$dir/records.parquet"
rm "$dir/records.parquet"
echo "loaded in $(since "$started") s (not counted below)"

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
started=$(now)
pg -c 'SELECT version()' -c "$(cat scripts/bench-stores/postgres/schema.sql)"
ask "SELECT $columns FORMAT CSV" | pg -c "COPY score_history FROM STDIN WITH (FORMAT csv)"
pg -v cluster="$cluster" -f scripts/bench-stores/postgres/index.sql
echo "copied, indexed, vacuumed and analysed in $(since "$started") s (not counted below)"

echo "== all three in turns, $domains companies with $records records each, $cores cores"
MODULES=$modules BIN=$bin PSQL=$pgbin/psql PGHOST=$dir/pg END=$end node scripts/bench-stores/run.mjs compare "$dir/duck.db"
