#!/bin/sh
# Sends random requests of the OpenAPI document and raw bytes to a live server, and raw bytes to
# the handlers in the process, each for FUZZTIME. SEED repeats the first.
set -eu
cd "$(dirname "$0")/.."
# The fuzzer kills its workers, so they cannot clean up.
TMPDIR=$(mktemp -d)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
go test ./contract -count=1 -v -timeout 1h -run '^TestRandomRequests$' -random.for "${FUZZTIME:-60s}" -random.seed "${SEED:-$(date +%s)}"
go test ./contract -run '^$' -fuzz '^FuzzRequest$' -fuzztime "${FUZZTIME:-60s}"
go test ./server -run '^$' -fuzz '^FuzzConnection$' -fuzztime "${FUZZTIME:-60s}"
