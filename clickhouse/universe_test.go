package clickhouse_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"companyscore/clickhouse"
	"companyscore/scoring"
	"companyscore/universe"
)

// anyRecord returns a record with random scores in one of a few cohorts.
func anyRecord(rng *rand.Rand, domain string, at time.Time) scoring.Record {
	tenth := func() float64 { return float64(rng.IntN(1001)) / 10 }
	pick := func(from ...string) string { return from[rng.IntN(len(from))] }
	rec := scoring.Record{
		Domain: domain, CompanyName: "Company " + domain, PipelineVersion: scoring.PipelineVersion, ScoredAt: at,
		Composite: tenth(), ScalePremium: float64(rng.IntN(121)) / 10, Confidence: scoring.BandLow,
		Sector: pick("software", "media", scoring.Unknown), GeoScope: pick("global", "global", scoring.Unknown),
		Profile: scoring.Profile(pick(string(scoring.ProfileGrowth), string(scoring.ProfileEstablished),
			string(scoring.ProfileUnclassified))),
		Buckets: scoring.BucketScores{TeamStructure: tenth(), MarketPosition: tenth(), MomentumTailwinds: tenth(),
			FinancialHealth: tenth()},
	}
	rec.Rating = scoring.RatingOf(rec.Composite)
	if rng.IntN(3) > 0 { // the others have no data
		rec.CompletenessPct = tenth()
	}
	return rec
}

// history has all written records.
type history []written

type written struct {
	scoring.Record
	at time.Time // of writing
}

// write inserts records with given written_at times.
func (h *history) write(t *testing.T, db *clickhouse.DB, records ...written) {
	t.Helper()
	if len(records) == 0 {
		return
	}
	batch, err := db.Conn().PrepareBatch(t.Context(),
		"INSERT INTO score_history (domain, scored_at, pipeline_version, company_name, sector, geo_scope, profile, rating, "+
			"composite, scale_premium, team_structure, market_position, momentum_tailwinds, financial_health, completeness_pct, "+
			"confidence, written_at)")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		err := batch.Append(r.Domain, r.ScoredAt, r.PipelineVersion, r.CompanyName, r.Sector, r.GeoScope, string(r.Profile),
			string(r.Rating), r.Composite,
			r.ScalePremium, r.Buckets.TeamStructure, r.Buckets.MarketPosition, r.Buckets.MomentumTailwinds, r.Buckets.FinancialHealth,
			r.CompletenessPct, string(r.Confidence), r.at)
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := batch.Send(); err != nil {
		t.Fatal(err)
	}
	*h = append(*h, records...)
}

// records returns the records of the current version, newest first. Of the copies of a record
// the one written last counts.
func (h history) records() []scoring.Record {
	type key struct {
		domain string
		at     time.Time
	}
	last := make(map[key]written)
	for _, r := range h {
		k := key{r.Domain, r.ScoredAt}
		if old, ok := last[k]; r.PipelineVersion == scoring.PipelineVersion && (!ok || old.at.Before(r.at)) {
			last[k] = r
		}
	}
	var records []scoring.Record
	for _, r := range last {
		records = append(records, r.Record)
	}
	slices.SortFunc(records, func(a, b scoring.Record) int { return b.ScoredAt.Compare(a.ScoredAt) })
	return records
}

// slowCounts computes the counts per company.
func slowCounts(records []scoring.Record, at time.Time, minDataPct float64) universe.Counts {
	var newest []scoring.Record
	seen := make(map[string]bool)
	for _, r := range records {
		if !seen[r.Domain] {
			seen[r.Domain] = true
			if r.CompletenessPct >= minDataPct {
				newest = append(newest, r)
			}
		}
	}
	counts := universe.Count(newest, at)
	counts.MinDataPct = minDataPct
	return counts
}

// slowMovers computes the movers per company.
func slowMovers(records []scoring.Record, at time.Time, minDataPct float64) universe.Movers {
	movers := universe.Movers{PipelineVersion: scoring.PipelineVersion, Lists: make(map[universe.Window]universe.MoverList)}
	for _, w := range universe.Windows {
		list := universe.MoverList{Start: at.Add(-w.Length()), End: at}
		last, before := make(map[string]scoring.Record), make(map[string]scoring.Record)
		for _, rec := range slices.Backward(records) { // the newest of each side stays
			switch {
			case rec.ScoredAt.After(at):
			case rec.ScoredAt.Before(list.Start):
				before[rec.Domain] = rec
			default:
				last[rec.Domain] = rec
			}
		}
		var all []universe.Mover
		for domain, now := range last {
			then, ok := before[domain]
			if ok && min(then.CompletenessPct, now.CompletenessPct) >= minDataPct {
				split := scoring.Attribute(then, now)
				all = append(all, universe.Mover{
					Company: universe.Company{Domain: domain, Name: now.CompanyName, Composite: now.Composite,
						CompletenessPct: now.CompletenessPct},
					Then: then.Composite, Attribution: &split,
				})
			}
		}
		pick := func(sign float64) (side []universe.Mover) {
			for len(side) < universe.MoversShown {
				best := -1
				for i, m := range all {
					if m.Delta()*sign > 0 && (best < 0 || m.Delta()*sign > all[best].Delta()*sign || m.Delta() == all[best].Delta() &&
						m.Domain < all[best].Domain) {
						best = i
					}
				}
				if best < 0 {
					break
				}
				side = append(side, all[best])
				all[best] = universe.Mover{}
			}
			return side
		}
		list.Gainers, list.Decliners = pick(1), pick(-1)
		movers.Lists[w] = list
	}
	return movers
}

// TestStatisticsEqualTheSlowWay compares counts and movers with a computation in Go over all
// history, for random records in random order, with and without merges.
func TestStatisticsEqualTheSlowWay(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			db := open(t)
			u := clickhouse.NewUniverse(db)
			rng := rand.New(rand.NewPCG(seed, 2))
			at := noon
			var all history
			for round := range 8 {
				var records []written
				n := rng.IntN(80)
				if round == 0 {
					n = 900
				}
				for range n {
					made := at.Add(-time.Duration(rng.IntN(200*24)) * time.Hour) // also late ones
					switch rng.IntN(10) {
					case 0:
						made = at.Add(time.Duration(rng.IntN(48)) * time.Hour) // a clock that is ahead
					case 1, 2, 3:
						made = at
					}
					r := anyRecord(rng, fmt.Sprintf("c%d.com", rng.IntN(300)), made)
					r.Composite = float64(rng.IntN(40)) / 2 // many have the same
					r.Rating = scoring.RatingOf(r.Composite)
					if rng.IntN(20) == 0 {
						r.PipelineVersion = "v0"
					}
					if len(all) > 0 && rng.IntN(8) == 0 { // the same run once more, and its score may have changed
						old := all[rng.IntN(len(all))].Record
						r.Domain, r.ScoredAt, r.PipelineVersion = old.Domain, old.ScoredAt, old.PipelineVersion
						if rng.IntN(2) == 0 {
							r = old
						}
					}
					records = append(records, written{r, noon.Add(time.Duration(len(all)+len(records)) * time.Second)})
				}
				for _, part := range [][]written{records[:n/2], records[n/2:]} {
					all.write(t, db, part...)
				}
				if rng.IntN(3) == 0 {
					for _, table := range []string{"score_latest", "score_history"} {
						if err := db.Conn().Exec(t.Context(), "OPTIMIZE TABLE "+table+" FINAL"); err != nil {
							t.Fatal(err)
						}
					}
				}
				at = at.Add(time.Duration(rng.IntN(20*24)) * time.Hour)
				minDataPct := []float64{0, 0.1, 60}[round%3]
				counts, err := u.Count(t.Context(), at, minDataPct)
				if err != nil {
					t.Fatal(err)
				}
				slices.SortFunc(counts.Cohorts, byKey)
				known := all.records()
				want := slowCounts(known, at, minDataPct)
				slices.SortFunc(want.Cohorts, byKey)
				if diff := cmp.Diff(want, counts, cmpopts.IgnoreFields(universe.Counts{}, "Settled", "Recent"),
					cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("round %d: %s", round, diff)
				}
				var peers []string
				everybody := slowCounts(known, at, 0)
				slices.SortFunc(everybody.Cohorts, byKey)
				for _, c := range everybody.Cohorts {
					if c.Peers() {
						peers = append(peers, fmt.Sprint(keyOf(c), c.Stats().Count))
					}
				}
				if got := column(t, db, "SELECT concat('[', sector, ' ', geo_scope, ' ', toString(profile), '] ', toString(companies)) "+
					"FROM v1_cohort ORDER BY sector, geo_scope, toString(profile)"); !slices.Equal(got, peers) {
					t.Fatalf("round %d: v1_cohort has %q, want %q", round, got, peers)
				}
				movers, err := u.Movers(t.Context(), at, minDataPct)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(slowMovers(known, at, minDataPct), movers, cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("round %d: %s", round, diff)
				}
			}
		})
	}
}

// TestCompaniesWithoutDataChangeNothing adds 10,000 companies without data. With a minimum of data the statistics stay as they were.
func TestCompaniesWithoutDataChangeNothing(t *testing.T) {
	t.Parallel()
	db := open(t)
	u := clickhouse.NewUniverse(db)
	rng := rand.New(rand.NewPCG(5, 6))
	var all history
	var known, unknown []written
	for i := range 300 {
		for _, age := range []time.Duration{time.Hour, 40 * 24 * time.Hour} {
			rec := anyRecord(rng, fmt.Sprintf("known%d.com", i), noon.Add(-age))
			rec.CompletenessPct = 1 + float64(rng.IntN(990))/10
			known = append(known, written{rec, noon.Add(-age)})
		}
	}
	for i := range 10_000 {
		rec := anyRecord(rng, fmt.Sprintf("unknown%d.com", i), noon.Add(-time.Hour))
		rec.CompletenessPct = 0
		unknown = append(unknown, written{rec, noon.Add(-time.Hour)})
	}
	statistics := func() universe.Snapshot {
		t.Helper()
		counts, err := u.Count(t.Context(), noon, 1)
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(counts.Cohorts, byKey)
		movers, err := u.Movers(t.Context(), noon, 1)
		if err != nil {
			t.Fatal(err)
		}
		return universe.Snapshot{Counts: counts, Movers: movers}
	}
	all.write(t, db, known...)
	before := statistics()
	if before.Counts.Companies() != 300 || len(before.Movers.Lists[universe.Month].Gainers) == 0 {
		t.Fatalf("%d companies and %d gainers", before.Counts.Companies(), len(before.Movers.Lists[universe.Month].Gainers))
	}
	all.write(t, db, unknown...)
	if diff := cmp.Diff(before, statistics()); diff != "" {
		t.Error(diff)
	}
}

func byKey(a, b universe.Cohort) int { return slices.Compare(keyOf(a), keyOf(b)) }

func keyOf(c universe.Cohort) []string { return []string{c.Sector, c.GeoScope, string(c.Profile)} }

func TestEmptyUniverseIsCounted(t *testing.T) {
	t.Parallel()
	u := clickhouse.NewUniverse(open(t))
	counts, err := u.Count(t.Context(), noon, 0)
	if err != nil || len(counts.Cohorts) != 0 || counts.PipelineVersion != scoring.PipelineVersion || !counts.At.Equal(noon) {
		t.Errorf("%+v, %v", counts, err)
	}
	movers, err := u.Movers(t.Context(), noon, 0)
	if err != nil || len(movers.Lists) != len(universe.Windows) || len(movers.Lists[universe.Week].Gainers) != 0 {
		t.Errorf("%+v, %v", movers, err)
	}
}

// TestCountNamesTheRecordsItRead checks that a snapshot identifies the records that its count
// read, also if their inserts were in flight.
func TestCountNamesTheRecordsItRead(t *testing.T) {
	t.Parallel()
	db := open(t)
	u, s := clickhouse.NewUniverse(db), scores(t, db)
	rng := rand.New(rand.NewPCG(3, 4))
	var all history
	write := func(scored, at time.Duration) { // before noon
		all.write(t, db, written{anyRecord(rng, "example.com", noon.Add(-scored)), noon.Add(-at)})
	}
	write(48*time.Hour, 48*time.Hour) // long before the count
	write(24*time.Hour, 24*time.Hour)
	write(time.Minute, time.Second) // just before it
	counts, err := u.Count(t.Context(), noon, 0)
	if err != nil {
		t.Fatal(err)
	}
	write(30*time.Second, 2*time.Second) // its insert was in flight at the count
	write(0, -time.Minute)               // after it
	f := func(counts universe.Counts, want ...bool) {
		t.Helper()
		tables, err := universe.New(universe.Snapshot{Counts: counts})
		if err != nil {
			t.Fatal(err)
		}
		records, err := s.WrittenSince(t.Context(), "example.com", scoring.PipelineVersion, tables.Settled())
		if err != nil {
			t.Fatal(err)
		}
		var got []bool
		for i, r := range records {
			got = append(got, tables.Counted(r))
			if known := all[len(all)-1-i]; r.Composite != known.Composite || !r.WrittenAt.Equal(known.at) ||
				scoring.KeyOf(r.Record) != scoring.KeyOf(known.Record) {
				t.Errorf("record %d is %+v, want %+v", i, r, known)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("counted %v, want %v", got, want)
		}
		newest, err := s.Newest(t.Context(), "example.com")
		if err != nil || !cmp.Equal(newest, records[0]) {
			t.Errorf("newest is %+v, %v; want %+v", newest, err, records[0])
		}
	}
	f(counts, false, false, true, true) // and of those long before only the newest
	for i := range 3 {
		all.write(t, db, written{anyRecord(rng, fmt.Sprintf("other%d.com", i), noon), noon})
	}
	u.SetRecentMax(2)
	if counts, err = u.Count(t.Context(), noon, 0); err != nil {
		t.Fatal(err)
	}
	if len(counts.Recent) != 0 || !counts.Settled.Equal(noon) {
		t.Errorf("of more than 2 recent records %d are named, settled at %s", len(counts.Recent), counts.Settled)
	}
}

// TestCountSeesOneState checks that counts and leaderboards are of the same rows during
// concurrent writes.
func TestCountSeesOneState(t *testing.T) {
	t.Parallel()
	db := open(t)
	u := clickhouse.NewUniverse(db)
	done := make(chan struct{})
	var writing sync.WaitGroup
	defer writing.Wait()
	defer close(done)
	writing.Go(func() {
		rng := rand.New(rand.NewPCG(8, 9))
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			rec := anyRecord(rng, fmt.Sprintf("c%d.com", i), noon)
			rec.Sector, rec.GeoScope, rec.Profile = "software", "global", scoring.ProfileGrowth
			if err := db.PutRecords(t.Context(), []scoring.Record{rec}); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 60 {
		counts, err := u.Count(t.Context(), time.Now(), 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range counts.Cohorts {
			steps := make(map[int]int64)
			for _, company := range c.Leaderboard {
				steps[int(company.Composite*100+0.5)]++
			}
			if n := c.Stats().Count; n <= universe.LeaderboardMax && int(n) != len(c.Leaderboard) || int(n) > len(counts.Recent) {
				t.Fatalf("%d companies are counted, %d are on the leaderboard, %d were written lately", n, len(c.Leaderboard),
					len(counts.Recent))
			}
			if c.Stats().Count > universe.LeaderboardMax {
				return
			}
			for _, s := range c.Steps {
				if steps[s.Step] != s.Count {
					t.Fatalf("%d companies are counted at step %d, %d are on the leaderboard", s.Count, s.Step, steps[s.Step])
				}
			}
		}
	}
}
