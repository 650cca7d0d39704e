#!/bin/sh
# Names every program that `make deps` and `make build` need and that is missing, before anything is
# fetched. Run by `make deps`.
set -eu

missing=
need() { # program, what to do
	command -v "$1" >/dev/null 2>&1 || missing="$missing
  $1: $2"
}
need "${GO:-go}" "install Go 1.26 from https://go.dev/dl/"
need npm "install Node.js 18 or newer with npm"
need tar "install tar"
need curl "install curl (the examples of the documents use it)"
if ! { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; }; then # else redis.sh installs it
	need redis-server "install Redis 7 (Debian, Ubuntu: sudo apt-get install redis-server; macOS: brew install redis)"
fi
free=$(df -Pk . | awk 'NR == 2 {print int($4 / 1024)}')
if [ "${free:-0}" -lt 2500 ] && [ ! -e .deps ]; then
	missing="$missing
  disk: $free MB are free here; the engine, the program and Go's caches need 2500 MB"
fi
if [ -n "$missing" ]; then
	echo "needed and missing:$missing" >&2
	exit 1
fi
