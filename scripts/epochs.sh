#!/bin/sh
# Two servers behind nginx answer 10,000 equal requests for movers and distribution in turns, while runs
# add companies and the batch jobs count them. Within an epoch all bodies must be identical: a body may
# give way to a new one and never return. Everything runs on 127.0.0.1 in a temporary directory.
set -eu
cd "$(dirname "$0")/.."
. scripts/up.sh
requests=${REQUESTS:-10000} companies=${COMPANIES:-10000} epoch=20
sh scripts/nginx.sh
nginx=$(command -v nginx || echo /usr/sbin/nginx)
[ -x "$nginx" ] || { echo "nginx is not installed (Debian, Ubuntu: apt-get install nginx-light)" >&2; exit 1; }

start_up --epoch-count ${epoch}s --epoch-movers ${epoch}s --schedule-count '@every 2s' --schedule-movers '@every 5s'
"$bin" serve --listen 127.0.0.1:0 --log-level error >"$dir/serve.log" 2>&1 &
also $!
await "a second server" grep -qs '^ready' "$dir/serve.log"
second=$(sed -n 's/^ready \([^ ]*\).*/\1/p' "$dir/serve.log")

# The shipped configuration, with the addresses and the files of this script.
port=$(node -e 'const s = require("net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close() })')
for server in "$url" "$second"; do echo "server ${server#http://};"; done >"$dir/api-servers.conf"
sed -e "s#/tmp/#$dir/#; s#listen 8080#listen 127.0.0.1:$port#; /etc\/nginx\/limits/d; s#/dev/stdout#$dir/access.log#; s#/dev/stderr#$dir/error.log#" deploy/nginx.conf >"$dir/nginx.conf"
"$nginx" -p "$dir" -c "$dir/nginx.conf" -g 'daemon off;' >"$dir/nginx.log" 2>&1 &
also $!
direct=$url
url=http://127.0.0.1:$port
await "nginx" get /proxy-health >/dev/null 2>&1

"$bin" bench seed --domains "$companies" --records 2 --signals none >/dev/null 2>&1
"$bin" batch --once count movers
await "$companies companies are served" serves "$companies"

"$bin" bench seed --keys 1 --tier enterprise --keys-file "$dir/keys" >/dev/null
"$bin" bench run --quiet --url "$direct" --keys-file "$dir/keys" --scenario cold-start --rate 3 --duration 80s >"$dir/cold.log" 2>&1 & # the breaker of a key admits 200
also $!

# Rounds of 500 requests over four epochs, one after the other, so that their order is known.
rounds=$((requests / 500))
mkdir "$dir/bodies"
round=0
while [ $round -lt $rounds ]; do
	n=0
	while [ $n -lt 500 ]; do
		name=$(printf '%02d-%03d' $round $n)
		if [ $((n % 2)) = 0 ]; then
			printf 'url = "%s/v1/distribution"\noutput = "%s"\n' "$url" "$dir/bodies/distribution-$name"
		else
			printf 'url = "%s/v1/movers?window=90d"\noutput = "%s"\n' "$url" "$dir/bodies/movers-$name"
		fi
		n=$((n + 1))
	done >"$dir/curl"
	curl -sS --fail --max-time 10 -H "X-API-Key: $key" -K "$dir/curl"
	round=$((round + 1))
	sleep $((4 * epoch / rounds))
done
faults=0
for kind in distribution movers; do
	cat "$dir/bodies/$kind"-* >/dev/null
	(cd "$dir/bodies" && sha256sum "$kind"-*) | cut -d ' ' -f 1 >"$dir/sums"
	different=$(sort -u "$dir/sums" | wc -l) changes=$(uniq "$dir/sums" | wc -l)
	echo "$kind: $(wc -l <"$dir/sums") answers, $different bodies, $changes in a row"
	[ "$different" -eq "$changes" ] && [ "$different" -gt 1 ] && [ "$different" -le 8 ] || faults=1
done
for server in "$direct" "$second"; do
	echo "answers of ${server#http://}: $(grep -c "\"server\":\"${server#http://}\"" "$dir/access.log")"
done
[ $faults = 0 ] || { echo "not met: a body returned after another, or none changed" >&2; exit 1; }
