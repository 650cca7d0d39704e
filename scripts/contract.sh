#!/bin/sh
# Tests a live `up` against the specification and prints one line per rule.
# Operations and rules that no test covered are listed at the end.
set -eu
cd "$(dirname "$0")/.."
out=$(mktemp)
trap 'rm -f "$out"' EXIT
status=0
go test -count=1 -v -timeout 20m ./contract -random.for 20s >"$out" 2>&1 || status=$?
awk '
	/^ +--- (PASS|FAIL|SKIP): .*:_/ {
		verdict = $2; name = $3
		sub(/^Test[A-Za-z]*\/(with_the_worker_held_up\/)?/, "", name); gsub(/_/, " ", name)
		mark = verdict == "PASS:" ? "ok  " : verdict == "FAIL:" ? "FAIL" : "skip"
		print mark "  " name
	}
' "$out" | sort -t ' ' -k3,3V -k4
awk '
	/^ +--- (PASS|FAIL|SKIP): .*:_/ { count[$2]++ }
	/^audit: / { print }
	END { printf "%d rules hold, %d do not, %d were skipped\n", count["PASS:"], count["FAIL:"], count["SKIP:"] }
' "$out"
if [ "$status" -ne 0 ]; then
	cat "$out"
fi
exit "$status"
