#!/bin/bash
# Builds the image, runs docker-compose.yml with it, and tests it through its proxy. Uses the Docker
# engine if one answers, with the images of the registries; else podman, see compose-podman.sh.
# Everything it started is removed at the end, also after a failure. Exit code 77: this machine
# cannot run containers. With --quick: build, start, health, main rules of the contract, down.
set -euo pipefail
cd "$(dirname "$0")/.."
quick=
[ "${1:-}" != --quick ] || quick=yes

work=$(mktemp -d)
last=
began=$SECONDS
undo=()
at_exit() { undo+=("$1"); }
finish() {
	status=$?
	trap - EXIT
	report $status
	for ((i = ${#undo[@]} - 1; i >= 0; i--)); do
		eval "${undo[i]}" || true
	done
	rm -rf "$work"
	echo "compose-test: $([ "$status" = 0 ] && echo passed || echo "exit $status") after $((SECONDS - began)) s"
	exit "$status"
}
trap finish EXIT
trap 'exit 1' INT TERM

# step names what comes next and prints how long the step before took.
step() {
	report 0
	last=$1 since=$SECONDS
	echo "compose-test: $1 ..."
}
report() {
	[ -z "$last" ] || echo "compose-test: $last: $([ "$1" = 0 ] && echo ok || echo FAILED), $((SECONDS - since)) s"
	last=
}
# quietly runs a command and shows its output only if it fails.
quietly() {
	"$@" >"$work/out" 2>&1 || {
		local code=$?
		tail -n 30 "$work/out" >&2
		return $code
	}
}
# cannot ends the script: this machine cannot run the test.
cannot() {
	echo "compose-test: skipped: $1" >&2
	exit 77
}

# contract runs rules of the contract suite on deployments and prints each rule that was left out.
contract() { # contract TIMEOUT [FLAG]...
	local status=0 limit=$1
	shift
	(cd contract && "$work/contract.test" -compose -binary "$COMPOSE_TEST_ROOT/bin/companyscore" -test.v -test.timeout "$limit" -random.for 10s "$@") >"$work/contract.log" 2>&1 || status=$?
	awk '
		/^=== RUN/ { rule = $3 }
		/^ +[a-z_]+_test.go:[0-9]+: / { if (!(rule in says)) { says[rule] = $0; sub(/^[^:]*:[0-9]+: /, "", says[rule]) } }
		/^ +--- SKIP: .*:_/ { name = $3; gsub(/_/, " ", name); print "left out: " name ": " says[$3] }
		/^ +--- (PASS|FAIL|SKIP): .*:_/ { count[$2]++ }
		/^audit: / { print }
		END { printf "%d rules hold, %d do not, %d were left out\n", count["PASS:"], count["FAIL:"], count["SKIP:"] }
	' "$work/contract.log"
	[ "$status" = 0 ] || cat "$work/contract.log" >&2
	return "$status"
}

[ "$(id -u)" = 0 ] || cannot "it kills processes of containers, so it must run as root"
. scripts/compose-podman.sh
export COMPOSE_PROJECT_NAME=companyscore-test COMPOSE_FILE=docker-compose.yml:deploy/compose-test/override.yml
export COMPOSE_TEST_ROOT=$PWD
export CLICKHOUSE_PASSWORD=clickhouse REDIS_PASSWORD=redis ANALYST_PASSWORD=analyst
VERSION=${VERSION:-dev} COMMIT=${COMMIT:-$(git rev-parse HEAD)}
export VERSION COMMIT
if docker info >/dev/null 2>&1; then
	export COMPOSE_TEST_ENGINE=docker
	command -v docker-compose >/dev/null 2>&1 || cannot "docker-compose is not installed"
	step "build the image"
	quietly docker-compose build
else
	export COMPOSE_TEST_ENGINE=podman COMPOSE_FILE=$COMPOSE_FILE:deploy/compose-test/podman.yml
	install_packages
	start_podman
	make_base_images
	step "build the image"
	make_service
	make_clickhouse
	check_health 9>&- &
	at_exit "kill $!"
fi
step "version and labels"
"$COMPOSE_TEST_ENGINE" run --rm --network none companyscore:local --version | tee "$work/version"
grep -q "$COMMIT" "$work/version"
[ "$("$COMPOSE_TEST_ENGINE" inspect --format '{{index .Config.Labels "org.opencontainers.image.revision"}}' companyscore:local)" = "$COMMIT" ]
step "build the tests"
go test -c -o "$work/deployment.test" ./internal/test/compose
go test -c -o "$work/contract.test" ./contract
make --silent build
if [ -z "$quick" ]; then
	step "examples, limits of the proxy, kills, restart"
	(cd internal/test/compose && "$work/deployment.test" -compose -test.timeout 15m)
	step "all rules of the contract through the proxy"
	contract 45m
else
	step "main rules of the contract through the proxy"
	contract 10m -test.run '^TestContract$'
fi
