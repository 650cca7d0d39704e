#!/bin/sh
# Installs redis-server if it is missing. Run by `make deps`. It has no prompts.
set -eu

if command -v redis-server >/dev/null 2>&1; then
	exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	echo "redis: installing redis-server with apt-get"
	log=$(mktemp)
	# Keep the package from starting a server.
	policy=/usr/sbin/policy-rc.d
	if [ ! -e "$policy" ]; then
		printf '#!/bin/sh\nexit 101\n' >"$policy"
		chmod +x "$policy"
		trap 'rm -f "$policy"' EXIT INT TERM
	fi
	export DEBIAN_FRONTEND=noninteractive
	if ! { apt-get update -qq && apt-get install -y -qq --no-install-recommends redis-server; } >"$log" 2>&1; then
		cat "$log" >&2
		exit 1
	fi
	rm -f "$log"
	exit 0
fi
echo "redis: redis-server is not installed: install Redis 7 (Debian, Ubuntu: sudo apt-get install redis-server; macOS: brew install redis), then run make deps again" >&2
exit 1
