# Sourced by the scripts that measure or show a running service. It makes a temporary directory and
# removes it at the end, with the processes that the script started.
#
#   start_up FLAGS   starts `up` in $dir/data on a free port of 127.0.0.1, with facts as the only source.
#                    Sets $url and $key and exports COMPANYSCORE_DATA.
#   also PID         stops another process at the end, before `up`.
#   get PATH         reads from $url with $key.
#   await WHAT COMMAND   runs the command until it succeeds, for 30 s at most.
bin=$PWD/bin/companyscore
dir=$(mktemp -d)
started=
finish() {
	for pid in $started; do
		kill "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	rm -rf "$dir"
}
trap finish EXIT
trap 'exit 1' INT TERM

also() { started="$1 $started"; }

await() { # in steps of 0.1 s
	awaited=$1 tries=0
	shift
	until "$@"; do
		tries=$((tries + 1))
		[ $tries -lt 300 ] || { echo "not within 30 s: $awaited" >&2; return 1; }
		sleep 0.1
	done
}

up_is_ready() {
	kill -0 "$up" 2>/dev/null || { cat "$dir/up.log" >&2; exit 1; }
	grep -qs '^ready' "$dir/up.log"
}

start_up() {
	"$bin" up --data "$dir/data" --listen 127.0.0.1:0 --sources facts --log-level error "$@" >"$dir/up.log" 2>&1 &
	up=$!
	also $up
	await "the service is ready" up_is_ready || { cat "$dir/up.log" >&2; exit 1; }
	export COMPANYSCORE_DATA="$dir/data"
	url=$(sed -n 's/^ready \([^ ]*\) .*/\1/p' "$dir/up.log")
	key=$(sed -n 's/^ *live key *//p' "$dir/up.log")
}

get() { curl -sS --fail-with-body --max-time 10 --retry 5 --retry-all-errors -H "X-API-Key: $key" "$url$1"; }

serves() { get /v1/distribution | grep -q "\"count\":$1[,}]"; } # N: the server has counted N companies
