#!/bin/sh
# Imports the facts of 20,863 listed companies, scores all of them and prints statistics: the
# distribution, one company in its cohort, and the leaders of a sector. Prints a line per required
# figure and exits 1 if a limit is not met. Everything runs on 127.0.0.1 in a temporary directory.
set -eu
cd "$(dirname "$0")/.."
file=examples/listed.csv
spearman_min=0.7 sector_max=2 cohort_max=10 seconds_max=30
. scripts/up.sh

start_up
grep '^ready' "$dir/up.log"
table() { "$bin" sql "$1"; }
figure() { "$bin" sql --format TabSeparated "$1"; }

echo "\$ companyscore facts import $file"
"$bin" facts import --quiet "$file"
echo "\$ companyscore run start --from $file --wait"
timeout 120 "$bin" run start --quiet --from "$file" --wait

echo "Distribution:"
table "SELECT label AS composite, companies, bar(share, 0, 1, 40) AS share FROM v1_distribution WHERE measure = 'composite' AND companies > 0 ORDER BY lower"
table "SELECT label AS grade, companies, round(100 * share, 1) AS percent FROM v1_distribution WHERE measure = 'rating' AND companies > 0 ORDER BY label"
echo "Cohorts:"
table "SELECT sector, geo_scope, toString(profile) AS profile, companies, round(mean, 1) AS mean, p50, p90, max FROM v1_cohort ORDER BY companies DESC LIMIT 10"
"$bin" batch --once count
counted=$(figure "SELECT count() FROM v1_score_latest")
await "$counted companies are served" serves "$counted"
leader=$(figure "SELECT domain FROM v1_score_latest WHERE sector = 'industrials' ORDER BY composite DESC, domain LIMIT 1")
echo "Rank of $leader among all companies:"
get "/v1/score/$leader" | sed 's/.*"rank":\({[^}]*}\).*/\1/'
printf '\nRank of %s in its cohort:\n' "$leader"
get "/v1/company/$leader/cohort" | sed 's/.*"cohort":\({[^}]*}\).*/\1/'
echo
echo "Leaders of the sector industrials:"
table "SELECT row_number() OVER (ORDER BY composite DESC, domain) AS nr, domain, company_name, country, composite, toString(rating) AS grade, scale_premium AS premium FROM v1_score_latest WHERE sector = 'industrials' ORDER BY nr LIMIT 10"

rows=$(($(wc -l <"$file") - 1))
scored=$(figure "SELECT count() FROM v1_score_latest")
spearman=$(figure "SELECT rankCorr(composite, assumeNotNull(raw['market_value_usd'])) FROM v1_signal_latest WHERE raw['market_value_usd'] IS NOT NULL")
unknown=$(figure "SELECT 100 * countIf(sector = 'unknown') / count() FROM v1_score_latest")
# A company without peers has an unknown sector, geo scope or profile, or is alone in its cohort.
alone=$(figure "SELECT 100 * countIf(c.companies < 2) / count() FROM v1_score_latest AS s LEFT JOIN v1_cohort AS c ON c.sector = s.sector AND c.geo_scope = s.geo_scope AND c.profile = s.profile")
seconds=$(figure "SELECT dateDiff('millisecond', min(started_at), max(started_at + toIntervalMillisecond(took_ms))) / 1000 FROM v1_run WHERE kind = 'score'")
echo
awk -v rows="$rows" -v scored="$scored" -v spearman="$spearman" -v unknown="$unknown" -v alone="$alone" -v seconds="$seconds" \
	-v spearman_min="$spearman_min" -v sector_max="$sector_max" -v cohort_max="$cohort_max" -v seconds_max="$seconds_max" 'BEGIN {
	check("companies scored", scored, "all " rows, scored == rows)
	check("Spearman of composite and class of market value", sprintf("%.3f", spearman), "at least " spearman_min, spearman + 0 >= spearman_min)
	check("companies without a sector", sprintf("%.2f %%", unknown), "at most " sector_max " %", unknown + 0 <= sector_max)
	check("companies with an empty cohort", sprintf("%.2f %%", alone), "at most " cohort_max " %", alone + 0 <= cohort_max)
	check("scored within", sprintf("%.1f s", seconds), "at most " seconds_max " s", seconds + 0 <= seconds_max)
	exit bad
}
function check(what, value, limit, ok) {
	printf "%s %s: %s, %s\n", ok ? "ok  " : "FAIL", what, value, limit
	if (!ok) bad = 1
}'
