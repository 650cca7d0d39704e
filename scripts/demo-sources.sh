#!/bin/sh
# Runs the program against fakes of all data sources for 200 invented companies.
# Each answer takes a second, and one source in ten fails. Prints a line per
# required figure, and exits 1 if one is missed. Then it scores ten companies again
# and again while 30 % of the sources fail. SEED selects the companies and
# the failures. It uses 127.0.0.1 only and removes its files.
set -eu
cd "$(dirname "$0")/.."
TMPDIR=$(mktemp -d)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
trap 'exit 1' INT TERM
status=0
go test -count=1 -timeout 10m ./internal/test/fakesources -run '^TestDemoSources$' -v -args -program "$PWD/bin/companyscore" -seed "${SEED:-1}" >"$TMPDIR/out" 2>&1 || status=$?
if [ "$status" -ne 0 ]; then
	cat "$TMPDIR/out"
else
	echo "seed ${SEED:-1}"
	grep -E '^(ok|FAIL) +[0-9a-z]' "$TMPDIR/out"
	go test -count=1 -timeout 10m ./internal/test/fakesources -run '^TestFailuresDoNotMoveScores$' -v -args -seed "${SEED:-1}" >"$TMPDIR/out" 2>&1 || status=$?
	[ "$status" -eq 0 ] || cat "$TMPDIR/out"
	sed -n 's/^ *carry_test.go:[0-9]*: ok/ok/p' "$TMPDIR/out"
fi
exit "$status"
