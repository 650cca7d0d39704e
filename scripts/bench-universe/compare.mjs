// Compares what `companyscore batch show --output json` prints with what SQL found in all history:
//   node compare.mjs shown.json cohorts.tsv movers.tsv
// Numbers may differ by 1e-6. Exits 1 when anything differs.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

const [shownPath, cohortsPath, moversPath] = process.argv.slice(2)
const shown = JSON.parse(readFileSync(shownPath, 'utf8'))
const table = path => readFileSync(path, 'utf8').split('\n').filter(line => line).map(line => line.split('\t'))
const same = (a, b) => String(a) === String(b) || a !== '' && b !== '' && Math.abs(Number(a) - Number(b)) <= 1e-6

const stats = s => [s.Count, s.Mean, s.P50, s.P90, s.Stddev, s.Min, s.Max]
const hash = leaderboard => leaderboard?.length ? createHash('md5').update(leaderboard.map(c => c.Domain).join(' ')).digest('hex') : ''
const cohorts = new Map(shown.Cohorts.map(c => {
	const sums = c.BucketSums
	return [[c.Sector, c.GeoScope, c.Profile].join('\t'), [...stats(c), sums.TeamStructure, sums.MarketPosition, sums.MomentumTailwinds, sums.FinancialHealth, hash(c.Leaderboard)]]
}))
const movers = shown.Movers ? ['7d', '30d', '90d'].flatMap(w => ['Gainers', 'Decliners'].flatMap(side =>
	(shown.Movers[w][side] ?? []).map(m => [parseInt(w), side === 'Gainers' ? 'gainer' : 'decliner', m.Domain, m.Composite, m.Then]))) : []

let differences = 0
const differs = (what, got, want) => {
	if (++differences <= 10) console.error(`${what}: published ${got}, found ${want}`)
}
let compared = 0
for (const [sector, geo, profile, ...want] of table(cohortsPath)) {
	if (sector === '') { // all companies
		if (!stats(shown.All).every((v, i) => same(v, want[i]))) differs('all companies', stats(shown.All), want)
		console.log(`count ${want[0]}, mean ${want[1]}, deviation ${want[4]}, least ${want[5]}, most ${want[6]}`)
		continue
	}
	const key = [sector, geo, profile].join('\t')
	const got = cohorts.get(key)
	if (!got || !got.every((v, i) => same(v, want[i]))) differs(key, got, want)
	cohorts.delete(key)
	compared++
}
for (const [key, got] of cohorts) differs(key, got, 'nothing')
const want = table(moversPath)
if (movers.length !== want.length) differs('movers', movers.length, want.length)
want.forEach((row, i) => {
	if (!movers[i] || !row.every((v, j) => same(movers[i][j], v))) differs(`mover ${i + 1}`, movers[i], row)
})
console.log(`${compared} cohorts and ${want.length} movers compared, ${differences} differences`)
process.exit(differences ? 1 : 0)
