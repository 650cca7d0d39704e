#!/bin/sh
# Tries real SQL clients against the embedded ClickHouse, as an analyst: clickhouse-go and the recorded requests of clickhouse-connect, JDBC and Grafana
# in Go tests; @clickhouse/client (queries, streams, parameters, cancellation, refusals) and DuckDB (Parquet exports, equal rows and sums) in Node.js;
# the program of docs/sql/connect/r.md, if R is installed.
# Seeds DOMAINS companies in a temporary directory and runs on loopback.
set -eu
cd "$(dirname "$0")/.."
clickhouse=1.23.1 duckdb=1.5.6-r.1
bin=$PWD/bin/companyscore modules=$PWD/.deps/sql-clients-$clickhouse-$duckdb
if [ ! -d "$modules/node_modules/@duckdb/node-api" ]; then
	if [ "${OFFLINE:-}" ]; then
		echo "sql-clients: $modules is not installed" >&2
		exit 1
	fi
	npm install --prefix "$modules" --no-audit --no-fund --loglevel=error "@clickhouse/client@$clickhouse" "@duckdb/node-api@$duckdb" >/dev/null
fi

dir=$(mktemp -d -p "${TMPDIR:-/tmp}")
engine=
finish() {
	[ -z "$engine" ] || kill "$engine" 2>/dev/null || true
	[ -z "$engine" ] || wait "$engine" 2>/dev/null || true
	rm -rf "$dir"
}
trap finish EXIT
trap 'exit 1' INT TERM
go test -count=1 -run 'TestRecordedClientsConnect|TestDriverOfGoAsAnalyst|TestAnalystSeesAndChangesNothingPrivate' -v ./clickhouse >"$dir/go.log" || failed=1
grep -E '^ *--- |^(ok|FAIL)' "$dir/go.log"
[ -z "${failed:-}" ]
password=$(head -c 18 /dev/urandom | base64 | tr -d '+/=')
COMPANYSCORE_PASSWORD=$password COMPANYSCORE_ANALYST_PASSWORD=$password "$bin" clickhouse --path "$dir/clickhouse" --listen 127.0.0.1:0 >"$dir/engine.log" 2>&1 &
engine=$!
i=0
until grep -q '^ready' "$dir/engine.log"; do
	i=$((i + 1))
	[ $i -lt 300 ] || { cat "$dir/engine.log" >&2; exit 1; }
	sleep 0.1
done
address=$(sed -n 's/^ready http:\/\///p' "$dir/engine.log")
export CLICKHOUSE_URL="http://companyscore:$password@$address/companyscore" REDIS_URL=unix:///none
"$bin" migrate >/dev/null
"$bin" bench seed --domains "${DOMAINS:-20000}" --records 3 --quiet
MODULES=$modules ADDRESS=http://$address PASSWORD=$password DIR=$dir node scripts/sql-clients.mjs
if command -v Rscript >/dev/null; then
	sed -n '/^```r$/,/^```$/p' docs/sql/connect/r.md | sed "/^\`\`\`/d; s/127\.0\.0\.1:8123/$address/" >"$dir/connect.R"
	echo 'stopifnot(nrow(scores) > 10, identical(names(scores), c("sector", "companies", "mean")), scores$companies > 0, scores$mean > 0)' >>"$dir/connect.R"
	ANALYST_PASSWORD=$password Rscript "$dir/connect.R" >"$dir/R.log" 2>&1 || { cat "$dir/R.log" >&2; exit 1; }
	echo "ok    R: $(Rscript -e 'cat(R.version.string)'), $(($(wc -l <"$dir/R.log") - 1)) rows as docs/sql/connect/r.md reads them"
else
	echo "R is not installed: docs/sql/connect/r.md was not tried"
fi
kill -0 "$engine" || { echo "the engine has ended" >&2; exit 1; }
