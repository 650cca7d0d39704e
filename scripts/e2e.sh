#!/bin/sh
# Installs what the browser tests need and runs a script of e2e/: Debian's chromium by apt-get, playwright-core and axe-core from
# npm at the versions of e2e/package-lock.json. It has no prompts. CHROMIUM names another browser.
set -eu
cd "$(dirname "$0")/.."

if [ -z "${CHROMIUM:-}" ] && ! command -v chromium >/dev/null 2>&1; then
	if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
		echo "e2e: chromium is not installed: install it (Debian, Ubuntu: sudo apt-get install chromium), or set CHROMIUM to a Chromium or Chrome" >&2
		exit 1
	fi
	echo "e2e: installing chromium with apt-get"
	log=$(mktemp)
	export DEBIAN_FRONTEND=noninteractive
	if ! { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; } >"$log" 2>&1; then
		cat "$log" >&2
		exit 1
	fi
	rm -f "$log"
fi
export CHROMIUM="${CHROMIUM:-$(command -v chromium)}"
if ! [ e2e/node_modules/.package-lock.json -nt e2e/package-lock.json ]; then
	npm ci --prefix e2e --no-audit --no-fund --loglevel=error
fi
exec node "$@"
