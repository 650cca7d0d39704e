# Sourced by scripts/compose-test.sh where no Docker engine answers. Installs podman on Debian, starts
# its API service with storage, networks and settings of its own, and makes the base images. Nothing
# of another podman on the machine is used or changed. Containers, volumes and networks are removed
# when the script ends; the base images stay in $store.
store=${COMPOSE_TEST_STORE:-/var/cache/companyscore-compose-test}
run=/run/companyscore-compose-test

install_packages() {
	packages=
	for need in podman:podman runc:runc docker-compose:docker-compose debootstrap:debootstrap iptables:iptables \
		/usr/lib/cni/bridge:containernetworking-plugins /usr/lib/cni/dnsname:golang-github-containernetworking-plugin-dnsname; do
		command -v "${need%:*}" >/dev/null 2>&1 || packages="$packages ${need#*:}"
	done
	[ -n "$packages" ] || return 0
	command -v apt-get >/dev/null 2>&1 || cannot "no Docker engine answers, and this is not Debian: install Docker and docker-compose"
	step "install$packages"
	if [ ! -e /usr/sbin/policy-rc.d ]; then # the packages would start services of their own
		printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
		chmod +x /usr/sbin/policy-rc.d
		at_exit 'rm -f /usr/sbin/policy-rc.d'
	fi
	export DEBIAN_FRONTEND=noninteractive
	# shellcheck disable=SC2086 # a list of names
	quietly sh -c "apt-get update -qq && apt-get install -y -qq --no-install-recommends $packages" || cannot "the packages cannot be installed"
}

remove_containers() {
	podman rm --force --all --volumes --time 0 && podman volume prune --force && podman network prune --force && podman image prune --force || return
	rm -rf "/var/lib/cni/networks/${COMPOSE_PROJECT_NAME}"_* "/run/containers/cni/dnsname/${COMPOSE_PROJECT_NAME}"_* # podman leaves them
}

start_podman() {
	mkdir -p "$store" "$run"
	exec 9>"$store/lock"
	flock -n 9 || cannot "another compose test uses $store"
	files=$(ulimit -Hn) processes=$(ulimit -Hu) # podman's own defaults may be more than this machine allows
	[ "$files" != unlimited ] && [ "$files" -lt 100000 ] || files=100000
	[ "$processes" != unlimited ] && [ "$processes" -lt 30000 ] || processes=30000
	driver=vfs
	mkdir -p "$store"/probe/{lower,upper,work,all}
	if mount -t overlay -o "lowerdir=$store/probe/lower,upperdir=$store/probe/upper,workdir=$store/probe/work" none "$store/probe/all" 2>/dev/null; then
		umount "$store/probe/all"
		driver=overlay
	fi
	rm -rf "$store/probe"
	cat >"$store/containers.conf" <<-END
		[containers]
		default_ulimits = ["nofile=$files:$files", "nproc=$processes:$processes"]
		[engine]
		runtime = "runc"
		cgroup_manager = "cgroupfs"
		events_logger = "file"
		tmp_dir = "$run/libpod"
		[network]
		network_backend = "cni"
		network_config_dir = "$store/networks"
	END
	cat >"$store/storage.conf" <<-END
		[storage]
		driver = "$driver"
		graphroot = "$store/$driver"
		runroot = "$run/storage"
	END
	export CONTAINERS_CONF="$store/containers.conf" CONTAINERS_STORAGE_CONF="$store/storage.conf"
	quietly remove_containers || cannot "podman does not run here" # of a run that was killed
	forwarding=$(cat /proc/sys/net/ipv4/ip_forward)                # a network of containers switches it on
	at_exit "echo $forwarding >/proc/sys/net/ipv4/ip_forward"
	at_exit 'quietly remove_containers'
	podman system service --time 0 "unix://$run/podman.sock" >"$work/podman.log" 2>&1 9>&- &
	at_exit "kill $!"
	export DOCKER_HOST="unix://$run/podman.sock"
}

# image builds a target of images.Dockerfile under a name, from files of a directory.
image() { # image TARGET NAME DIRECTORY [OPTION]...
	podman image exists "$2" && return 0
	target=$1 name=$2 directory=$3
	shift 3
	quietly podman build --isolation chroot --pull-never --target "$target" --tag "$name" --file deploy/compose-test/images.Dockerfile "$@" "$directory" || cannot "the image $name cannot be built"
}

make_base_images() {
	if ! podman image exists docker.io/library/debian:bookworm-slim; then
		step "make the base images"
		quietly debootstrap --variant=minbase --include=ca-certificates bookworm "$work/debian" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}" ||
			cannot "debootstrap makes no Debian here"
		if [ -e /etc/ssl/certs/ca-certificates.crt ]; then # with those that this machine trusts besides
			cp /etc/ssl/certs/ca-certificates.crt "$work/debian/etc/ssl/certs/"
		fi
		tar -C "$work/debian" -c . | quietly podman import - docker.io/library/debian:bookworm-slim
		rm -rf "$work/debian"
	fi
	quietly podman run --rm --network none docker.io/library/debian:bookworm-slim true || cannot "podman cannot start a container here"
	mkdir -p "$work/nothing"
	image golang docker.io/library/golang:1.26-bookworm "$(go env GOROOT)" --build-arg GOPROXY="$(go env GOPROXY)"
	image redis docker.io/library/redis:7 "$work/nothing"
	image nginx docker.io/library/nginx:1.28-alpine "$work/nothing"
	image libchdb localhost/libchdb:local "$(dirname .deps/libchdb-*/libchdb.so)"
}

# make_service builds the Dockerfile with the Go caches of this machine.
make_service() {
	cache=$(go env GOCACHE) modules=$(go env GOMODCACHE)
	mkdir -p "$cache" "$modules"
	quietly podman build --isolation chroot --pull-never --volume "$cache:/root/.cache/go-build" --volume "$modules:/go/pkg/mod" \
		--build-arg VERSION="$VERSION" --build-arg COMMIT="$COMMIT" --tag companyscore:local .
}

# make_clickhouse makes the image of ClickHouse from that of the service.
make_clickhouse() {
	quietly podman rmi --force docker.io/clickhouse/clickhouse-server:26.5 2>/dev/null || true
	image clickhouse docker.io/clickhouse/clickhouse-server:26.5 "$work/nothing"
}

# check_health runs the health checks of containers that are not healthy: without systemd podman does not.
check_health() {
	while sleep 1; do
		for container in $(podman ps --quiet --filter health=starting --filter health=unhealthy); do
			timeout 10 podman healthcheck run "$container" &
		done
		wait
	done >/dev/null 2>&1
}
