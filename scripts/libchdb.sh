#!/bin/sh
# Installs the embedded ClickHouse engine, libchdb, in .deps/libchdb-VERSION/.
# Run by `make deps`. It has no prompts and does nothing if the library exists.
set -eu
cd "$(dirname "$0")/.."

version=26.5.3
# The sha512 of each package in the form of npm (sha512-BASE64). A package without
# a pin is checked against the registry's own checksum, which protects the download
# but not the registry.
case "$(uname -s)-$(uname -m)" in
Linux-x86_64)
	package=@chdb/lib-linux-x64-gnu file=libchdb.so
	pin=sha512-fPrLmRt5Moor9yGz4mazbrNje4t7X9KB2mTGkXFWRxRBs2iKy8yh6jx11xsa0Qr3iDFMU/yHqd+bVdYJXu3QaQ==
	;;
Linux-aarch64) package=@chdb/lib-linux-arm64-gnu file=libchdb.so pin= ;;
Darwin-arm64) package=@chdb/lib-darwin-arm64 file=libchdb.dylib pin= ;;
*)
	echo "libchdb: no library for $(uname -s) on $(uname -m): run against a ClickHouse server with CLICKHOUSE_URL instead" >&2
	exit 1
	;;
esac

target=.deps/libchdb-$version
if [ -f "$target/$file" ]; then
	exit 0
fi
if ! command -v npm >/dev/null 2>&1; then
	echo "libchdb: npm is not installed: install Node.js 18 or newer with npm, then run make deps again" >&2
	exit 1
fi

echo "libchdb: fetching $package $version (170 MB, once)"
mkdir -p .deps
temp=$(mktemp -d .deps/fetch.XXXXXX)
trap 'rm -rf "$temp"' EXIT INT TERM
tarball=$(npm pack "$package@$version" --pack-destination "$temp" --silent --loglevel=error)

expected=$pin
if [ -z "$expected" ]; then
	expected=$(npm view "$package@$version" dist.integrity --loglevel=error)
	echo "libchdb: no pinned checksum of $package; checking against that of the registry"
fi
actual=sha512-$(node -e '
	const hash = require("crypto").createHash("sha512")
	require("fs").createReadStream(process.argv[1]).on("data", d => hash.update(d)).on("end", () => console.log(hash.digest("base64")))
' "$temp/$tarball")
if [ "$actual" != "$expected" ]; then
	echo "libchdb: checksum of $tarball is $actual, expected $expected: refusing to use it" >&2
	exit 1
fi

tar -xzf "$temp/$tarball" -C "$temp" "package/$file"
mkdir -p "$target"
mv "$temp/package/$file" "$target/$file"
echo "libchdb: $target/$file"
