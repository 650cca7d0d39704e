package clickhouse_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"companyscore/clickhouse"
	"companyscore/scoring"
	"companyscore/universe"
)

// anyRecord is a record with random scores in one of few groups.
func anyRecord(rng *rand.Rand, domain string, at time.Time) scoring.Record {
	tenth := func() float64 { return float64(rng.IntN(1001)) / 10 }
	profiles := []scoring.Profile{scoring.ProfileGrowth, scoring.ProfileEstablished, scoring.ProfileUnclassified}
	rec := scoring.Record{
		Domain: domain, CompanyName: "Company " + domain, PipelineVersion: scoring.PipelineVersion, ScoredAt: at,
		Composite: tenth(), ScalePremium: float64(rng.IntN(121)) / 10, Profile: profiles[rng.IntN(3)],
		Sector: fmt.Sprint("sector ", rng.IntN(2)), GeoScope: "global", Confidence: scoring.BandLow,
		Buckets: scoring.BucketScores{TeamStructure: tenth(), MarketPosition: tenth(), MomentumTailwinds: tenth(), FinancialHealth: tenth()},
	}
	rec.Rating = scoring.RatingOf(rec.Composite)
	return rec
}

// history is all that was ever written, as a test knows it.
type history []written

type written struct {
	scoring.Record
	at time.Time // of writing
}

// write inserts records with the times at which they are said to be written.
func (h *history) write(t *testing.T, db *clickhouse.DB, records ...written) {
	t.Helper()
	if len(records) == 0 {
		return
	}
	batch, err := db.Conn().PrepareBatch(t.Context(), "INSERT INTO score_history (domain, scored_at, pipeline_version, company_name, sector, geo_scope, profile, rating, "+
		"composite, scale_premium, team_structure, market_position, momentum_tailwinds, financial_health, confidence, written_at)")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		err := batch.Append(r.Domain, r.ScoredAt, r.PipelineVersion, r.CompanyName, r.Sector, r.GeoScope, string(r.Profile), string(r.Rating), r.Composite,
			r.ScalePremium, r.Buckets.TeamStructure, r.Buckets.MarketPosition, r.Buckets.MomentumTailwinds, r.Buckets.FinancialHealth, string(r.Confidence), r.at)
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := batch.Send(); err != nil {
		t.Fatal(err)
	}
	*h = append(*h, records...)
}

// by are the records of the current version that count at an instant, one for
// each company and time of scoring.
func (h history) by(at time.Time) []scoring.Record {
	type key struct {
		domain string
		at     time.Time
	}
	last := make(map[key]written)
	for _, r := range h {
		k := key{r.Domain, r.ScoredAt}
		old, ok := last[k]
		if r.PipelineVersion == scoring.PipelineVersion && !r.ScoredAt.After(at) && (!ok || old.at.Before(r.at)) {
			last[k] = r
		}
	}
	var records []scoring.Record
	for _, r := range last {
		records = append(records, r.Record)
	}
	return records
}

// slowly counts company by company.
func slowly(records []scoring.Record, at time.Time, limits universe.Limits) universe.Snapshot {
	newest := make(map[string]scoring.Record)
	for _, r := range records {
		if old, ok := newest[r.Domain]; !ok || old.ScoredAt.Before(r.ScoredAt) {
			newest[r.Domain] = r
		}
	}
	s := universe.Count(slices.Collect(maps.Values(newest)), at)
	for i := range s.Groups {
		s.Groups[i].Top = s.Groups[i].Top[:min(len(s.Groups[i].Top), limits.Members)]
	}
	s.Movers = make(map[universe.Window]universe.Movers)
	for _, w := range universe.Windows {
		m := slowMovers(records, w, at)
		m.Gainers, m.Decliners = m.Gainers[:min(len(m.Gainers), limits.Movers)], m.Decliners[:min(len(m.Decliners), limits.Movers)]
		s.Movers[w] = m
	}
	return s
}

// snapshotOf is what a tally publishes when all movers are due.
func snapshotOf(tally *universe.Tally) universe.Snapshot {
	for _, w := range universe.Windows {
		tally.Show(w)
	}
	return tally.Snapshot()
}

var uncounted = []cmp.Option{
	cmpopts.IgnoreFields(universe.Snapshot{}, "Generation", "Note"), cmpopts.IgnoreFields(universe.Group{}, "ID"), cmpopts.EquateEmpty(),
}

// TestCountingChangesEqualsCountingEverything holds that batches which go on from
// one another, a count of everything and a slow look at all history agree, whatever
// comes in whichever order.
func TestCountingChangesEqualsCountingEverything(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			db := open(t)
			u := clickhouse.NewUniverse(db)
			u.SetRecordsMax(50 + 100*seed) // so that a count takes several passes
			rng := rand.New(rand.NewPCG(seed, 2))
			limits := universe.Limits{Members: 3, MembersKept: 6, Movers: 3, MoversKept: 6}
			at := noon
			var all history
			var tally *universe.Tally
			lost := 0
			const rounds = 12
			for round := range rounds {
				var records []written
				n := rng.IntN(40)
				if round == 0 {
					n = 200
				}
				for range n {
					made := at.Add(-time.Duration(rng.IntN(200*24)) * time.Hour) // also late ones
					switch rng.IntN(10) {
					case 0:
						made = at.Add(time.Duration(rng.IntN(48)) * time.Hour) // a clock that is ahead
					case 1, 2, 3:
						made = at
					}
					r := anyRecord(rng, fmt.Sprintf("c%d.com", rng.IntN(60)), made)
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
				if rng.IntN(3) == 0 { // what came and what was counted may lie in one part
					if err := db.Conn().Exec(t.Context(), "OPTIMIZE TABLE universe_record FINAL"); err != nil {
						t.Fatal(err)
					}
				}
				if rng.IntN(3) > 0 {
					at = at.Add(time.Duration(rng.IntN(20*24)) * time.Hour)
				}
				full, err := u.Count(t.Context(), at, limits, func(string) {})
				if err != nil {
					t.Fatal(err)
				}
				if tally != nil {
					if rng.IntN(4) == 0 { // a batch that dies before it publishes, some time before the next
						dead, died := decoded(t, tally), tally.At.Add(time.Duration(rng.Int64N(int64(at.Sub(tally.At)+1))))
						if err := u.Advance(t.Context(), dead, died); err != nil && !errors.Is(err, universe.ErrLost) {
							t.Fatal(err)
						}
					}
					err = u.Advance(t.Context(), tally, at)
				}
				switch {
				case errors.Is(err, universe.ErrLost):
					lost++
					tally = full
				case err != nil:
					t.Fatal(err)
				case tally == nil:
					tally = full
				}
				if why := tally.Differs(full); why != "" {
					t.Errorf("round %d: counting changes and counting everything differ: %s", round, why)
				}
				want := slowly(all.by(at), at, limits)
				if diff := cmp.Diff(want, snapshotOf(full), uncounted...); diff != "" {
					t.Fatalf("round %d: counting everything: %s", round, diff)
				}
				if diff := cmp.Diff(want, snapshotOf(tally), uncounted...); diff != "" {
					t.Fatalf("round %d: counting changes: %s", round, diff)
				}
				if _, err := universe.New(tally.Snapshot()); err != nil {
					t.Fatal(err)
				}
				tally = decoded(t, tally)
				tally.SetLimits(limits)
			}
			if lost > rounds/2 {
				t.Errorf("%d of %d batches had to count everything", lost, rounds)
			}
		})
	}
}

// TestNotesOfADeadBatchAreNotBuiltOn holds that a batch which finds notes of one that died before
// it published does not go on from them.
func TestNotesOfADeadBatchAreNotBuiltOn(t *testing.T) {
	t.Parallel()
	db := open(t)
	u := clickhouse.NewUniverse(db)
	rng := rand.New(rand.NewPCG(5, 6))
	var all history
	window := universe.Month.Length()
	write := func(at time.Time, composite float64) {
		r := anyRecord(rng, "example.com", at)
		r.Composite, r.Rating = composite, scoring.RatingOf(composite)
		all.write(t, db, written{r, noon.Add(time.Duration(len(all)) * time.Second)})
	}
	write(noon.Add(-window-240*time.Hour), 40)
	write(noon.Add(-window+2*time.Hour), 50)
	write(noon.Add(-window+4*time.Hour), 40)
	write(noon.Add(-time.Hour), 70)
	tally, err := u.Count(t.Context(), noon, universe.Limits{}, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	published := decoded(t, tally)
	if err := u.Advance(t.Context(), tally, noon.Add(3*time.Hour)); err != nil { // before the window is 50
		t.Fatal(err)
	}
	if left := column(t, db, "SELECT toString(count()) FROM universe_touched"); !slices.Equal(left, []string{"0"}) {
		t.Errorf("%s touched records are left behind", left)
	}
	at := noon.Add(5 * time.Hour) // before the window is 40 again
	if err := u.Advance(t.Context(), published, at); !errors.Is(err, universe.ErrLost) {
		t.Fatalf("notes that were not published: %v", err)
	}
	if tally, err = u.Count(t.Context(), at, universe.Limits{}, func(string) {}); err != nil {
		t.Fatal(err)
	}
	write(at, 71)
	at = at.Add(time.Hour)
	if err := u.Advance(t.Context(), tally, at); err != nil {
		t.Fatal(err)
	}
	want := slowly(all.by(at), at, universe.Limits{Members: universe.MembersKept, Movers: universe.MoversShown})
	if diff := cmp.Diff(want, snapshotOf(tally), uncounted...); diff != "" {
		t.Error(diff)
	}
}

// decoded is what another process makes of a tally.
func decoded(t *testing.T, tally *universe.Tally) *universe.Tally {
	t.Helper()
	out, err := universe.Decode(universe.Encode(tally))
	if err != nil {
		t.Fatal(err)
	}
	out.SetLimits(tally.Limits())
	return out
}

// slowMovers finds movers company by company.
func slowMovers(records []scoring.Record, window universe.Window, end time.Time) universe.Movers {
	m := universe.Movers{Start: end.Add(-window.Length()), End: end}
	last, before := make(map[string]scoring.Record), make(map[string]scoring.Record)
	for _, rec := range records {
		side := last
		if rec.ScoredAt.Before(m.Start) {
			side = before
		}
		if side[rec.Domain].ScoredAt.Before(rec.ScoredAt) {
			side[rec.Domain] = rec
		}
	}
	var all []universe.Mover
	for domain, now := range last {
		if then, ok := before[domain]; ok {
			all = append(all, universe.Mover{Domain: domain, CompanyName: now.CompanyName,
				Now: now.Composite, Then: then.Composite, RatingNow: now.Rating, RatingThen: then.Rating})
		}
	}
	pick := func(sign float64) []universe.Mover {
		list := []universe.Mover{}
		for len(list) < universe.MoversShown {
			best := -1
			for i, c := range all {
				if c.Delta()*sign > 0 && (best < 0 || c.Delta()*sign > all[best].Delta()*sign || c.Delta() == all[best].Delta() && c.Domain < all[best].Domain) {
					best = i
				}
			}
			if best < 0 {
				break
			}
			list = append(list, all[best])
			all[best] = universe.Mover{}
		}
		return list
	}
	m.Gainers, m.Decliners = pick(1), pick(-1)
	return m
}

func TestEveryCompanyIsInOneRange(t *testing.T) {
	t.Parallel()
	for _, n := range []uint64{1, 2, 3, 7, 64, 1000} {
		next := uint64(0)
		all := clickhouse.Ranges(n)
		for i, ends := range all {
			if ends[0] != next || ends[1] < ends[0] {
				t.Fatalf("range %d of %d is %d to %d, and should begin at %d", i, n, ends[0], ends[1], next)
			}
			next = ends[1] + 1
		}
		if uint64(len(all)) != n || next != 0 {
			t.Errorf("%d ranges of %d end at %d", len(all), n, next-1)
		}
	}
}

func TestEmptyUniverseIsCounted(t *testing.T) {
	t.Parallel()
	u := clickhouse.NewUniverse(open(t))
	tally, err := u.Count(t.Context(), noon, universe.Limits{}, func(string) {})
	if err != nil || tally.Companies() != 0 {
		t.Fatalf("%+v, %v", tally, err)
	}
	if err := u.Advance(t.Context(), tally, noon.Add(time.Hour)); err != nil || tally.Companies() != 0 {
		t.Fatalf("%+v, %v", tally, err)
	}
}

func TestNotesThatDoNotFitAreNoticed(t *testing.T) {
	t.Parallel()
	db := open(t)
	u := clickhouse.NewUniverse(db)
	rng := rand.New(rand.NewPCG(7, 7))
	var all history
	all.write(t, db, written{anyRecord(rng, "a.com", noon), noon}, written{anyRecord(rng, "b.com", noon), noon})
	for name, spoil := range map[string]func(tally *universe.Tally) error{
		"another version":     func(tally *universe.Tally) error { tally.PipelineVersion = "v0"; return nil },
		"records were lost":   func(tally *universe.Tally) error { tally.Records++; return nil },
		"another store":       func(tally *universe.Tally) error { tally.Position += 10; return nil },
		"the clock went back": func(tally *universe.Tally) error { tally.At = tally.At.Add(time.Hour); return nil },
		"the notes are gone":  func(tally *universe.Tally) error { return u.Forget(t.Context(), math.MaxUint64) },
	} {
		tally, err := u.Count(t.Context(), noon, universe.Limits{}, func(string) {})
		if err == nil {
			_, err = u.Count(t.Context(), noon, universe.Limits{}, func(string) {}) // one generation before is kept
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := spoil(tally); err != nil {
			t.Fatal(err)
		}
		if err := u.Advance(t.Context(), tally, noon); !errors.Is(err, universe.ErrLost) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestStandingTellsWhatWasCounted(t *testing.T) {
	t.Parallel()
	db := open(t)
	u := clickhouse.NewUniverse(db)
	s := scores(t, db)
	rng := rand.New(rand.NewPCG(3, 4))
	if _, _, err := s.Newest(t.Context(), "example.com"); !errors.Is(err, scoring.ErrNotFound) {
		t.Fatalf("the newest record of an unknown company: %v", err)
	}
	old, fresh := anyRecord(rng, "example.com", noon.Add(-time.Hour)), anyRecord(rng, "example.com", noon)
	var all history
	all.write(t, db, written{old, noon})
	tally, err := u.Count(t.Context(), noon, universe.Limits{}, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	before := tally.Note
	all.write(t, db, written{fresh, noon})
	f := func(note uint64, want *scoring.Record) {
		t.Helper()
		newest, at, err := s.Newest(t.Context(), "example.com")
		if err != nil || newest.Composite != fresh.Composite || !at.Equal(noon) {
			t.Fatalf("newest %v of %s, %v; want %v", newest.Composite, at, err, fresh.Composite)
		}
		counted, err := s.Counted(t.Context(), "example.com", tally.Generation, note)
		if err != nil {
			t.Fatal(err)
		}
		if want == nil && counted != nil || want != nil && (counted == nil || counted.Target != universe.Target{Domain: want.Domain, Composite: want.Composite, Buckets: want.Buckets} || !counted.ScoredAt.Equal(want.ScoredAt)) {
			t.Errorf("counted as of %d: %+v, want %+v", note, counted, want)
		}
	}
	f(tally.Note, &old)
	if err := u.Advance(t.Context(), tally, noon); err != nil {
		t.Fatal(err)
	}
	f(before, &old)
	f(tally.Note, &fresh)
	f(before-1, nil)
	tables, err := universe.New(tally.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	counted, err := s.Counted(t.Context(), "example.com", tally.Generation, tally.Note)
	if key := (universe.GroupKey{Sector: fresh.Sector, GeoScope: fresh.GeoScope, Profile: fresh.Profile}); err != nil || !tables.CountedIn(counted, key) {
		t.Errorf("the company is not counted in its group: %v", err)
	}
	// What the tables say by themselves is what the store says.
	if as, known := tables.CountedAs(fresh, noon.Add(-time.Hour)); !known || *as != *counted {
		t.Errorf("the tables say %+v, %v; the store says %+v", as, known, counted)
	}
}
