#!/bin/sh
# Holds a live `up` against the specification and prints one line for each rule.
set -eu
cd "$(dirname "$0")/.."
out=$(mktemp)
trap 'rm -f "$out"' EXIT
status=0
go test -count=1 -v -timeout 15m ./contract >"$out" 2>&1 || status=$?
awk '
	/^ +--- (PASS|FAIL|SKIP): .*:_/ {
		verdict = $2; name = $3
		sub(/^Test[A-Za-z]*\/(with_the_worker_held_up\/)?/, "", name); gsub(/_/, " ", name)
		mark = verdict == "PASS:" ? "ok  " : verdict == "FAIL:" ? "FAIL" : "skip"
		count[mark]++
		print mark "  " name
	}
	END { printf "\n%d rules hold, %d do not, %d were skipped\n", count["ok  "], count["FAIL"], count["skip"] }
' "$out"
if [ "$status" -ne 0 ]; then
	cat "$out"
fi
exit "$status"
