#!/bin/sh
# Sends RATE=10000 reads per second for DURATION=60s to an `up` of its own and compares the log of
# requests with the client's count, for each store that answered: counts must be equal, and rows
# and calls not stored must add up to them. Uses a temporary directory and free ports of
# 127.0.0.1, and stops all processes that it started.
set -eu
cd "$(dirname "$0")/.."
. scripts/up.sh

start_up
"$bin" facts import --quiet examples/companies.csv >/dev/null
"$bin" run start --quiet --from examples/companies.csv --wait >/dev/null
"$bin" bench seed --keys 4 --tier enterprise --keys-file "$dir/keys" >/dev/null

cat >"$dir/compare.js" <<'JS'
// Arguments: runtime.json, report, seconds to wait for the last write.
const fs = require("fs");
const [runtime, reportFile, seconds] = process.argv.slice(2);
const url = new URL(JSON.parse(fs.readFileSync(runtime)).clickhouse_url);
const report = JSON.parse(fs.readFileSync(reportFile));
const auth = "Basic " + Buffer.from(url.username + ":" + url.password).toString("base64");
async function query(statement) {
	const res = await fetch(`http://${url.host}/?database=${url.pathname.slice(1)}_private`, {method: "POST", body: statement, headers: {Authorization: auth}});
	const text = await res.text();
	if (!res.ok) throw new Error(text);
	return text.trim().split("\n").filter(Boolean).map(line => JSON.parse(line));
}
const columns = "concat('score ', answered_by) AS class";
async function compare() {
	const counts = await query(`SELECT ${columns}, toUInt32(sum(m.calls)) AS calls, toUInt32(sum(m.not_stored)) AS without FROM v1_request_minute AS m WHERE account_id != '' GROUP BY class FORMAT JSONEachRow`);
	const rows = await query(`SELECT ${columns}, toUInt32(count()) AS n FROM request FINAL WHERE account_id != '' GROUP BY class FORMAT JSONEachRow`);
	const lines = report.classes.map(c => {
		const count = counts.find(r => r.class === c.name) || {calls: 0, without: 0}, row = rows.find(r => r.class === c.name) || {n: 0};
		return {class: c.name, client: c.count, counted: count.calls, rows: row.n, not_stored: count.without, equal: c.count === count.calls && row.n + count.without === count.calls};
	});
	const others = counts.filter(r => !report.classes.some(c => c.name === r.class));
	return {lines, others, equal: lines.length > 0 && others.length === 0 && lines.every(l => l.equal)};
}
(async () => {
	let result;
	for (const end = Date.now() + 1000 * seconds; ; await new Promise(r => setTimeout(r, 200))) {
		result = await compare();
		if (result.equal || Date.now() > end) break;
	}
	console.table(result.lines);
	const [size] = await query("SELECT toUInt32(sum(rows)) AS n, toUInt32(sum(bytes_on_disk)) AS bytes, toUInt32(sum(secondary_indices_compressed_bytes)) AS by_id FROM system.parts WHERE active AND table = 'request' FORMAT JSONEachRow");
	console.log(`request: ${size.n} rows, ${(size.bytes / size.n).toFixed(1)} bytes each on disk, ${(size.by_id / size.n).toFixed(1)} of them for the index by id`);
	if (result.others.length > 0) console.log("not sent by the client:", result.others);
	console.log(result.equal ? "the log has every request of the client" : "the log differs from the client's count");
	process.exit(result.equal ? 0 : 1);
})();
JS

# No warm-up: the report counts the measurement alone, and the log counts everything.
"$bin" bench run --quiet --keys-file "$dir/keys" --scenario hot --domains-file examples/companies.csv --rate "${RATE:-10000}" --connections 16 \
	--warmup 0s --duration "${DURATION:-60s}" --json "$dir/report" || true # its verdict is about latency
node "$dir/compare.js" "$dir/data/runtime.json" "$dir/report" 10
