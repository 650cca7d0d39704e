#!/bin/sh
# Sends a live server requests made up from its own description, then raw bytes, and
# raw bytes to its handlers within the process, each for a while. SEED repeats the first.
set -eu
cd "$(dirname "$0")/.."
# The fuzzer ends its helpers without a chance to clean up.
TMPDIR=$(mktemp -d)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
go test ./contract -count=1 -v -timeout 1h -run '^TestRandomRequests$' -random.for "${FUZZTIME:-60s}" -random.seed "${SEED:-$(date +%s)}"
go test ./contract -run '^$' -fuzz '^FuzzRequest$' -fuzztime "${FUZZTIME:-60s}"
go test ./server -run '^$' -fuzz '^FuzzConnection$' -fuzztime "${FUZZTIME:-60s}"
