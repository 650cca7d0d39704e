#!/bin/sh
# Starts nginx in front of the servers of $API_SERVERS (name:port, separated by spaces), and reloads
# it when the address of a server has changed. The names are resolved every second, by the resolver of
# the container. A name that does not resolve keeps its last address.
set -eu
file=/tmp/api-servers.conf
: >$file

resolve() { # prints the servers for the upstream in nginx.conf
	for server in $API_SERVERS; do
		address=$(getent hosts "${server%:*}" | awk 'NR == 1 {print $1}') || address=
		case $address in
		'') grep " # $server\$" $file || true ;;
		*:*) echo "server [$address]:${server##*:} max_fails=2 fail_timeout=2s; # $server" ;;
		*) echo "server $address:${server##*:} max_fails=2 fail_timeout=2s; # $server" ;;
		esac
	done
}

stopped=
trap 'stopped=yes' TERM INT QUIT
until resolve >$file.new && [ -s $file.new ]; do
	echo "no name of $API_SERVERS resolves yet" >&2
	[ -z "$stopped" ] || exit 0
	sleep 1
done
mv $file.new $file
nginx -g 'daemon off;' &
nginx=$!
while [ -z "$stopped" ] && kill -0 $nginx 2>/dev/null; do
	sleep 1 &
	wait $! || true # a signal ends it
	[ -z "$stopped" ] || break
	resolve >$file.new
	if ! cmp -s $file.new $file; then
		mv $file.new $file
		echo "reload: $(tr '\n' ' ' <$file)" >&2
		nginx -s reload
	fi
done
[ -z "$stopped" ] || kill -QUIT $nginx 2>/dev/null || true
wait $nginx
