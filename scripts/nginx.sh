#!/bin/sh
# Installs nginx for `make bench-peers`, `make demo-epochs` and the tests of CI if that needs no prompt. Without
# nginx the comparison and its test skip it and report that.
set -eu

if command -v nginx >/dev/null 2>&1 || [ -x /usr/sbin/nginx ]; then
	exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	echo "nginx: installing nginx-light with apt-get"
	log=$(mktemp)
	# Keep the package from starting a server.
	policy=/usr/sbin/policy-rc.d
	if [ ! -e "$policy" ]; then
		printf '#!/bin/sh\nexit 101\n' >"$policy"
		chmod +x "$policy"
		trap 'rm -f "$policy"' EXIT INT TERM
	fi
	export DEBIAN_FRONTEND=noninteractive
	if ! { apt-get update -qq && apt-get install -y -qq --no-install-recommends nginx-light; } >"$log" 2>&1; then
		cat "$log" >&2
		echo "nginx: not installed; the comparison skips it" >&2
	fi
	rm -f "$log"
fi
