// The measuring part of scripts/bench-stores.sh:
//   node run.mjs load DUCK.DB RECORDS.PARQUET     makes DuckDB's table
//   node run.mjs compare DUCK.DB                  runs all three in turns, prints each step, and exits 1 when they do not
//                                                 agree or are not as many times slower as wanted
// MODULES is where DuckDB is installed; BIN, PSQL, PGHOST and END (newest record) are of compare.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { availableParallelism, totalmem } from 'node:os'

const env = process.env
const { DuckDBInstance } = createRequire(`${env.MODULES}/`)('@duckdb/node-api')
const [command, path, parquet] = process.argv.slice(2)
const db = await DuckDBInstance.create(path, { threads: String(availableParallelism()), memory_limit: `${Math.floor(totalmem() / 2 ** 21)}MiB` })
const duck = await db.connect()

if (command === 'load') {
	await duck.run(`CREATE TABLE score_history AS SELECT * FROM '${parquet}'`)
	await duck.run('CHECKPOINT')
	process.exit(0)
}

const runs = Number(env.RUNS ?? 3)
const steps = ['latest', 'rank', 'distribution', 'cohorts', 'members', 'movers']
const sql = (store, name) => readFileSync(new URL(`${store}/${name}.sql`, import.meta.url), 'utf8')
const numbers = text => text.split(/[|\t\n]/).slice(0, 7).map(Number)
const found = {} // count, mean, deviation, least, most of each store

const stores = {
	here() {
		const jobs = {}
		for (const job of ['count', 'movers']) {
			const out = execFileSync(env.BIN, ['batch', '--once', job], { encoding: 'utf8' })
			jobs[job] = Number(out.match(/took ([0-9.]+) s/)[1])
		}
		const { All: all } = JSON.parse(execFileSync(env.BIN, ['batch', 'show', '--output', 'json'], { encoding: 'utf8', maxBuffer: 2 ** 30 }))
		found.here = [all.Count, all.Mean, all.Stddev, all.Min, all.Max]
		return jobs
	},
	async duckdb() {
		const took = {}
		for (const step of steps) {
			const text = sql('duckdb', step).replace(/--.*$/gm, '').replaceAll('$end', `TIMESTAMPTZ '${env.END}+00'`)
			const began = performance.now()
			for (const statement of text.split(';')) {
				const rows = (await duck.runAndReadAll(statement)).getRows()
				if (step === 'distribution' && !found.duckdb) found.duckdb = rows[0].slice(0, 5).map(Number)
			}
			took[step] = (performance.now() - began) / 1000
		}
		return took
	},
	postgres() {
		const took = {}
		for (const step of steps) {
			const began = performance.now()
			for (const span of step === 'movers' ? ['7 days', '30 days', '90 days'] : ['']) {
				const out = execFileSync(env.PSQL, ['-U', 'bench', '-d', 'postgres', '-qAtX', '-v', 'ON_ERROR_STOP=1', '-v', `end=${env.END}`, '-v', `window=${span}`,
					'-f', new URL(`postgres/${step}.sql`, import.meta.url).pathname], { encoding: 'utf8', maxBuffer: 2 ** 30 })
				if (step === 'distribution') {
					const [n, mean, , , deviation, least, most] = numbers(out)
					found.postgres = [n, mean, deviation, least, most]
				}
			}
			took[step] = (performance.now() - began) / 1000
		}
		return took
	},
}

const best = {}
for (let run = 1; run <= runs; run++) {
	for (const [store, measure] of Object.entries(stores)) {
		const took = await measure()
		const sum = Object.values(took).reduce((a, b) => a + b)
		best[store] = Math.min(best[store] ?? Infinity, sum)
		console.log(`run ${run}  ${store.padEnd(8)} ${sum.toFixed(3).padStart(8)} s  ${Object.entries(took).map(([step, s]) => `${step} ${s.toFixed(3)}`).join(', ')}`)
	}
}

let wrong = false
for (const [store, values] of Object.entries(found)) {
	console.log(`${store.padEnd(8)} count ${values[0]}, mean ${values[1]}, deviation ${values[2]}, least ${values[3]}, most ${values[4]}`)
	wrong ||= values.some((v, i) => !(Math.abs(v - found.here[i]) <= 1e-6))
}
if (wrong) console.error('bench-stores: they do not agree')
for (const [store, factor] of [['postgres', Number(env.POSTGRES_FACTOR ?? 20)], ['duckdb', Number(env.DUCKDB_FACTOR ?? 2)]]) {
	const times = best[store] / best.here
	console.log(`best of each: ${store} ${best[store].toFixed(3)} s, here ${best.here.toFixed(3)} s: ${times.toFixed(1)} times as fast (wanted: ${factor})`)
	wrong ||= times < factor
}
process.exit(wrong ? 1 : 0)
