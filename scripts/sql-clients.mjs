// The Node.js part of scripts/sql-clients.sh. Each line of output is a check; the exit code is 1 if one fails.
// ADDRESS and PASSWORD are those of the user analyst, MODULES is where the clients are installed, DIR a directory for exports.
import { createWriteStream } from 'node:fs'
import { createRequire } from 'node:module'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

const env = process.env
const require = createRequire(`${env.MODULES}/`)
const { createClient, ClickHouseLogLevel } = require('@clickhouse/client')
const { DuckDBInstance } = require('@duckdb/node-api')

let failed = 0
async function check(name, test) {
	const began = performance.now()
	try {
		const shown = await test()
		console.log(`ok    ${name}${shown === undefined ? '' : `: ${shown}`} (${Math.round(performance.now() - began)} ms)`)
	} catch (e) {
		failed++
		console.log(`FAIL  ${name}: ${e.stack ?? e}`)
	}
}
function equal(got, want) {
	if (JSON.stringify(got) !== JSON.stringify(want)) throw new Error(`got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`)
}
async function refused(promise, code) {
	try {
		await promise
	} catch (e) {
		if (String(e.code) !== String(code)) throw new Error(`code ${e.code}, want ${code}: ${e.message}`)
		return
	}
	throw new Error('it was answered')
}

const common = { url: env.ADDRESS, username: 'analyst', password: env.PASSWORD, database: 'companyscore', log: { level: ClickHouseLogLevel.OFF } }
const client = createClient({
	...common, session_id: 'a-session', role: 'analysts', request_timeout: 400_000, compression: { request: true, response: true }, application: 'sql-clients',
	clickhouse_settings: { send_progress_in_http_headers: 1, http_headers_progress_interval_ms: '110000', cancel_http_readonly_queries_on_client_close: 1, max_memory_usage: '1000000000', wait_end_of_query: 0 },
})
const rows = async (query, more = {}) => (await client.query({ query, format: 'JSONEachRow', ...more })).json()

await check('@clickhouse/client: ping', async () => equal((await client.ping()).success, true))
await check('@clickhouse/client: ping by a statement', async () => equal((await client.ping({ select: true })).success, true))
await check('@clickhouse/client: who and where', async () => equal(await rows('SELECT currentUser() AS u, currentDatabase() AS d'), [{ u: 'analyst', d: 'companyscore' }]))
await check('@clickhouse/client: default database', async () => {
	const plain = createClient({ url: env.ADDRESS, username: 'analyst', password: env.PASSWORD })
	equal((await (await plain.query({ query: 'SHOW TABLES', format: 'JSONEachRow' })).json()).every(r => r.name.startsWith('v1_')), true)
	await plain.close()
})
for (const format of ['JSON', 'JSONCompact', 'JSONEachRow', 'JSONCompactEachRowWithNames', 'JSONObjectEachRow'])
	await check(`@clickhouse/client: ${format}`, async () => { await (await client.query({ query: 'SELECT domain, composite, scored_at FROM v1_score_latest LIMIT 5', format })).json() })
await check('@clickhouse/client: rows_before_limit_at_least', async () => {
	const set = await (await client.query({ query: 'SELECT number FROM numbers(1000) WHERE number > 5 LIMIT 2', format: 'JSON' })).json()
	equal(set.rows, 2)
})
await check('@clickhouse/client: parameters', async () => equal(
	await rows('SELECT {s:String} AS s, {a:Array(UInt8)} AS a, {d:Date} AS d, {n:Nullable(Int32)} AS n', { query_params: { s: `'"\\ \n\t`, a: [1, 2], d: '2026-01-02', n: null } }),
	[{ s: `'"\\ \n\t`, a: [1, 2], d: '2026-01-02', n: null }]))
await check('@clickhouse/client: parameter of type Identifier', async () => equal(
	await rows('SELECT count() AS n FROM {t:Identifier}', { query_params: { t: 'v1_score_latest' } }), await rows('SELECT count() AS n FROM v1_score_latest')))
await check('@clickhouse/client: query id', async () => equal((await client.query({ query: 'SELECT 1', query_id: 'mine' })).query_id, 'mine'))
await check('@clickhouse/client: stream of 1,000,000 rows', async () => {
	let n = 0
	const set = await client.query({ query: 'SELECT number FROM numbers(1000000)', format: 'JSONEachRow' })
	for await (const part of set.stream()) n += part.length
	equal(n, 1_000_000)
	return `${n} rows`
})
await check('@clickhouse/client: progress in the stream', async () => {
	let progress = 0, n = 0
	const set = await client.query({ query: 'SELECT number FROM numbers(100000)', format: 'JSONEachRowWithProgress' })
	for await (const part of set.stream()) for (const row of part) { const j = row.json(); if ('progress' in j) progress++; if ('row' in j) n++ }
	equal(n, 100_000)
	return `${progress} reports`
})
await check('@clickhouse/client: exec and its summary', async () => {
	const { stream, summary } = await client.exec({ query: 'SELECT 1 FORMAT TSV', clickhouse_settings: { wait_end_of_query: 1 } })
	stream.resume()
	equal(summary?.result_rows, '1')
})
await check('@clickhouse/client: answer of 160 MB with wait_end_of_query', async () => {
	const set = await client.query({ query: 'SELECT number FROM numbers(20000000)', format: 'CSV', clickhouse_settings: { wait_end_of_query: 1 } })
	let n = 0
	for await (const part of set.stream()) n += part.length
	equal(n, 20_000_000)
})
await check('@clickhouse/client: cancellation frees the statement', async () => {
	const abort = new AbortController()
	const going = client.query({ query: 'SELECT sum(sipHash64(number)) FROM numbers(1000000000000)', abort_signal: abort.signal })
	setTimeout(() => abort.abort(), 200)
	await going.then(() => { throw new Error('it ended') }, () => {})
})
await check('@clickhouse/client: 30 streams left in the middle', async () => {
	for (let i = 0; i < 30; i++) {
		const set = await client.query({ query: 'SELECT * FROM v1_signal', format: 'JSONEachRow' })
		for await (const _ of set.stream()) break
	}
	equal(await rows('SELECT 1 AS a'), [{ a: 1 }])
})
// Without compression: Node.js drops what is still compressed when the connection breaks off, and then the error is ECONNRESET.
await check('@clickhouse/client: error in the middle of a stream', async () => {
	const uncompressed = createClient(common)
	await refused((async () => {
		const set = await uncompressed.query({ query: 'SELECT throwIf(number = 900000) FROM numbers(1000000) SETTINGS max_block_size = 1000', format: 'JSONEachRow' })
		for await (const _ of set.stream());
	})(), 395)
	await uncompressed.close()
})
for (const [code, query, more] of [
	[164, 'INSERT INTO v1_signal VALUES (1)'], [164, 'CREATE TABLE x (a Int8) ENGINE = Memory'], [164, 'DROP VIEW v1_signal'], [164, 'SET max_threads = 1'], [164, 'USE system'],
	[497, 'SELECT * FROM companyscore_private.api_key'], [497, 'SELECT * FROM system.processes'], [60, 'SELECT * FROM api_key'], [62, 'SELEC 1'], [115, 'SELECT 1', { no_such_setting: '1' }],
	[452, 'SELECT 1', { max_memory_usage: '100000000000' }], [452, 'SELECT 1 SETTINGS max_execution_time = 100000'], [396, 'SELECT number FROM numbers(100)', { max_result_rows: '10' }],
]) await check(`@clickhouse/client: ${query} ${more ? JSON.stringify(more) : ''} is refused with ${code}`, () => refused(client.command({ query, clickhouse_settings: more }), code))
await client.close()

const plain = createClient(common)
const duck = await (await DuckDBInstance.create(':memory:')).connect()
const one = async query => (await duck.runAndReadAll(query)).getRowsJson()[0]
for (const [view, sums] of [
	['v1_score_latest', ['count(*)', 'count(DISTINCT domain)', 'sum(composite)', 'sum(epoch_ms(scored_at))', 'min(domain)', 'max(domain)']],
	['v1_score_history', ['count(*)', 'count(DISTINCT domain)', 'sum(composite)', 'sum(epoch_ms(scored_at))', 'min(domain)', 'max(domain)']],
	['v1_signal', ['count(*)', 'count(DISTINCT domain)', 'sum(score)', 'sum(epoch_ms(scored_at))', 'sum(raw)', 'count(raw)']],
]) await check(`DuckDB: ${view} in Parquet has the rows and sums of ClickHouse`, async () => {
	const file = `${env.DIR}/${view}.parquet`
	const { stream } = await plain.exec({ query: `SELECT * FROM ${view} FORMAT Parquet` })
	await pipeline(Readable.from(stream), createWriteStream(file))
	const there = await one(`SELECT ${sums.join(', ')} FROM '${file}'`)
	const inClickHouse = sums.map(s => s.replace('count(*)', 'count()').replace('epoch_ms(scored_at)', 'toUnixTimestamp64Milli(scored_at)')
		.replace('sum(composite)', 'sum(toFloat64(composite))').replace('count(DISTINCT domain)', 'uniqExact(domain)'))
	const here = (await (await plain.query({ query: `SELECT ${inClickHouse.join(', ')} FROM ${view}`, format: 'JSONCompactEachRow' })).json())[0]
	for (let i = 0; i < sums.length; i++) {
		const [a, b] = [String(there[i]), String(here[i])]
		if (a !== b && !(Math.abs(Number(a) - Number(b)) <= 1e-9 * Math.abs(Number(b)))) throw new Error(`${sums[i]}: DuckDB ${a}, ClickHouse ${b}`)
	}
	return `${there[0]} rows, ${sums[2]} ${there[2]}`
})
await plain.close()
console.log(failed ? `${failed} checks failed` : 'all checks passed')
process.exit(failed ? 1 : 0)
