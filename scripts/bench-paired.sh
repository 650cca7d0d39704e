#!/bin/sh
# Compares the hot read of this tree with that of another commit: one `up` of each on one
# machine, loaded in turns. Prints CPU time per answer and answers per second of each round,
# and the medians of the ratios of this tree to the other.
# Arguments: COMMIT [ROUNDS [SECONDS]]. BEFORE_ENV and NOW_ENV are variables for one of the two,
# such as BEFORE_ENV=COMPANYSCORE_REQUEST_LOG=false with HEAD as the commit.
set -eu
cd "$(dirname "$0")/.."
commit=${1:?"usage: scripts/bench-paired.sh COMMIT [ROUNDS [SECONDS]]"}
rounds=${2:-20}
seconds=${3:-5}
dir=$(mktemp -d)
ups=
finish() {
	for up in $ups; do
		kill "$up" 2>/dev/null || true
		wait "$up" 2>/dev/null || true
	done
	rm -rf "$dir"
}
trap finish EXIT
trap 'exit 1' INT TERM

mkdir "$dir/before"
git archive "$commit" | tar -x -C "$dir/before"
cp -al .deps "$dir/before/.deps"
(cd "$dir/before" && CGO_ENABLED=0 go build -trimpath -o "$dir/before.bin" .)
cp bin/companyscore "$dir/now.bin"

for side in before now; do
	settings=${NOW_ENV:-}
	[ $side = now ] || settings=${BEFORE_ENV:-}
	# shellcheck disable=SC2086 # words
	env $settings "$dir/$side.bin" up --data "$dir/$side.data" --listen 127.0.0.1:0 --sources facts --log-level error >"$dir/$side.log" 2>&1 &
	ups="$ups $!"
done
for side in before now; do
	i=0
	until grep -qs "^ready" "$dir/$side.log"; do
		i=$((i + 1))
		[ $i -lt 600 ] || { cat "$dir/$side.log" >&2; exit 1; }
		sleep 0.1
	done
	export COMPANYSCORE_DATA="$dir/$side.data"
	"$dir/$side.bin" facts import --quiet examples/companies.csv >/dev/null
	"$dir/$side.bin" run start --quiet --from examples/companies.csv --wait >/dev/null
	"$dir/$side.bin" bench seed --keys 4 --tier enterprise --keys-file "$dir/$side.keys" >/dev/null
done

# One generator, that of this tree, loads both.
round() { # SIDE: prints the CPU for each answer in microseconds and the answers a second
	"$dir/now.bin" bench run --quiet --data "$dir/$1.data" --keys-file "$dir/$1.keys" --scenario hot --saturate \
		--domains-file examples/companies.csv --duration "${seconds}s" --warmup 1s --json - >"$dir/report" || true
	node -e 'const r = JSON.parse(require("fs").readFileSync(process.argv[1])); const api = r.server.processes.find(p => p.name === "api" || p.name === "up") || r.server.processes[0];
		console.log((1e6 * api.cpu_s / r.load.answered).toFixed(3), r.load.achieved_per_s.toFixed(0))' "$dir/report"
}
round before >/dev/null
round now >/dev/null
echo "round  before us/answer  answers/s  now us/answer  answers/s  ratio of CPU  ratio of rate"
i=0
while [ $i -lt "$rounds" ]; do
	i=$((i + 1))
	if [ $((i % 2)) = 0 ]; then b=$(round before) && n=$(round now); else n=$(round now) && b=$(round before); fi
	echo "$i $b $n" | awk '{printf "%5d %17s %10s %14s %10s %13.3f %14.3f\n", $1, $2, $3, $4, $5, $4 / $2, $5 / $3}' | tee -a "$dir/rounds"
done
middle() { awk -v c="$1" '{print $c}' "$dir/rounds" | sort -n | awk '{v[NR] = $1} END {print (v[int((NR + 1) / 2)] + v[int((NR + 2) / 2)]) / 2}'; }
echo "median of $rounds rounds${NOW_ENV:+ with $NOW_ENV}, relative to $commit${BEFORE_ENV:+ with $BEFORE_ENV}: CPU time per answer $(middle 6), answers per second $(middle 7)"
