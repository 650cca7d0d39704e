#!/bin/sh
# Imports the facts of 880 real companies, scores them with `run start` and prints results.
# With the argument "crash" it also scores 40,000 generated companies, kills (SIGKILL)
# ClickHouse, redis-server, the batch jobs and the worker meanwhile, and checks the result.
# Everything runs on 127.0.0.1 in a temporary directory.
set -eu
cd "$(dirname "$0")/.."
mode=${1:-plain}
. scripts/up.sh

start_up
grep '^ready' "$dir/up.log"

pid_of() { sed -n "s/^ *\"$1\": \([0-9]*\),\{0,1\}\$/\1/p" "$dir/data/runtime.json"; }
ask() { "$bin" sql --format TabSeparated "$1" 2>/dev/null || echo 0; }
crash() { # crash PROCESS when at least N companies are scored
	i=0
	until [ "$(ask 'SELECT count() FROM v1_score_latest')" -ge "$2" ]; do
		i=$((i + 1))
		[ $i -gt 2000 ] && break
	done
	seen=$(ask 'SELECT count() FROM v1_score_latest')
	kill -9 "$(pid_of "$1")"
	echo "killed $1 (kill -9) with $seen of $all companies visible"
	[ "$seen" -lt "$all" ] || { echo "the kill was too late: no run was in flight" >&2; exit 1; }
}

echo "\$ companyscore facts import examples/companies.csv"
"$bin" facts import --quiet examples/companies.csv
if [ "$mode" = crash ]; then
	{
		sed 1d examples/companies.csv | cut -d , -f 1
		seq -f 'made-up-%.0f.com' 40000
	} >"$dir/domains.txt"
	all=$(wc -l <"$dir/domains.txt")
	echo "\$ companyscore run start --from domains.txt --wait"
	"$bin" run start --quiet --from "$dir/domains.txt" --wait >"$dir/run.log" 2>&1 &
	run=$!
	crash clickhouse 1
	crash redis-server 8000
	crash batch 12000
	crash worker 16000
	if ! wait $run; then
		# The connection of the command may have failed while it started runs.
		# A second call skips scored companies and joins runs in flight.
		cat "$dir/run.log"
		echo "\$ companyscore run start --from domains.txt --wait   # once more"
		"$bin" run start --quiet --from "$dir/domains.txt" --wait
	else
		cat "$dir/run.log"
	fi
	rows=$(ask 'SELECT count() FROM v1_score_latest')
	once=$(ask 'SELECT uniqExact(domain) FROM v1_score_latest')
	many=$(ask 'SELECT count() FROM (SELECT domain FROM v1_score_history GROUP BY domain HAVING count() > 1)')
	left=$("$bin" run list --limit 1000 | sed '1,/^RUN /d' | wc -l)
	echo "current records: $rows, companies: $once, companies with more than one record: $many, runs left open: $left"
	[ "$rows" = "$all" ] && [ "$once" = "$all" ] && [ "$many" = 0 ] && [ "$left" = 0 ]
else
	echo "\$ companyscore run start --from examples/companies.csv --wait"
	"$bin" run start --quiet --from examples/companies.csv --wait
fi

echo "The ten highest and the ten lowest:"
columns='company_name, composite, toString(rating) AS rating, scale_premium AS premium, toString(profile) AS profile, sector, completeness_pct, toString(confidence) AS confidence'
real="v1_score_latest WHERE domain NOT LIKE 'made-up-%'"
"$bin" sql "SELECT row_number() OVER (ORDER BY composite DESC, domain) AS nr, $columns FROM $real ORDER BY nr LIMIT 10"
"$bin" sql "SELECT row_number() OVER (ORDER BY composite DESC, domain) AS nr, $columns FROM $real ORDER BY nr DESC LIMIT 10"
echo "Mean composite by sector:"
"$bin" sql "SELECT sector, round(avg(composite), 2) AS mean, count() AS companies FROM $real GROUP BY sector ORDER BY mean DESC"
echo "An INSERT as analyst:"
if "$bin" sql "INSERT INTO company_facts (domain) VALUES ('evil.com')" 2>&1; then
	echo "the analyst could write" >&2
	exit 1
fi
