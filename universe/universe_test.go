package universe

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"companyscore/scoring"
)

var at = time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)

// randomRecords returns companies of few groups, with many equal composites.
func randomRecords(rng *rand.Rand, n int) []scoring.Record {
	tenth := func(lo, hi int) float64 { return float64(lo+rng.IntN(hi-lo+1)) / 10 }
	profiles := []scoring.Profile{scoring.ProfileGrowth, scoring.ProfileEstablished, scoring.ProfileUnclassified}
	records := make([]scoring.Record, n)
	for i := range records {
		composite := tenth(0, 1000)
		if rng.IntN(3) == 0 {
			composite = tenth(490, 510)
		}
		records[i] = scoring.Record{
			Domain: fmt.Sprintf("c%d.com", i), CompanyName: fmt.Sprint("Company ", i), Composite: composite,
			Rating:       scoring.RatingOf(composite),
			ScalePremium: tenth(0, 120), Profile: profiles[rng.IntN(3)], Sector: fmt.Sprint("s", rng.IntN(2)), GeoScope: "global",
			PipelineVersion: scoring.PipelineVersion,
			Buckets: scoring.BucketScores{TeamStructure: tenth(0, 1000), MarketPosition: tenth(0, 1000),
				MomentumTailwinds: tenth(0, 1000), FinancialHealth: tenth(0, 1000)},
		}
	}
	return records
}

// slow computes statistics by their definitions.
func slow(values []float64) Stats {
	if len(values) == 0 {
		return Stats{}
	}
	values = slices.Sorted(slices.Values(values))
	n := float64(len(values))
	var sum, squares float64
	for _, v := range values {
		sum += v
	}
	for _, v := range values {
		squares += (v - sum/n) * (v - sum/n)
	}
	nearest := func(p float64) float64 { return values[int(math.Ceil(p*n/100))-1] }
	return Stats{
		Count: int64(len(values)), Mean: sum / n, P50: nearest(50), P90: nearest(90),
		Stddev: math.Sqrt(squares / n), Min: values[0], Max: values[len(values)-1],
	}
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9*max(1, math.Abs(a)) }

var nearly = cmp.Comparer(near)

func TestStatisticsEqualTheSlowWay(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 2, 3, 9, 10, 11, 100, 1500} {
		records := randomRecords(rng, n)
		tables, err := New(Snapshot{Counts: Count(records, at)})
		if err != nil {
			t.Fatal(err)
		}
		var composites []float64
		for _, r := range records {
			composites = append(composites, r.Composite)
		}
		d := tables.Distribution()
		if diff := cmp.Diff(slow(composites), d.Stats, nearly); diff != "" {
			t.Errorf("%d companies: %s", n, diff)
		}
		var composite, premium, ratings, profiles int64
		for _, c := range d.CompositeHist {
			composite += c
		}
		for _, c := range d.PremiumHist {
			premium += c
		}
		for _, c := range d.Ratings {
			ratings += c
		}
		for _, c := range d.Profiles {
			profiles += c
		}
		if all := int64(n); composite != all || premium != all || ratings != all || profiles != all {
			t.Errorf("%d companies are counted as %d, %d, %d, %d", n, composite, premium, ratings, profiles)
		}
		for _, r := range records {
			below, equal := 0.0, -1.0 // without the company itself
			for _, c := range composites {
				switch {
				case c < r.Composite:
					below++
				case c == r.Composite:
					equal++
				}
			}
			percentile, size := tables.Rank(r.Composite)
			if want := int(100 * (below + equal/2) / float64(max(n-1, 1))); percentile != want || size != int64(n) {
				t.Fatalf("rank of %v among %d: %d of %d, want %d", r.Composite, n, percentile, size, want)
			}
		}
	}
}

func TestTargetIsLeftOutExactly(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{1, 2, 7, 40, 1400} {
		records := randomRecords(rng, n)
		tables, err := New(Snapshot{Counts: Count(records, at)})
		if err != nil {
			t.Fatal(err)
		}
		for _, rec := range records[:min(n, 60)] {
			now := rec // scored again since
			if rng.IntN(2) == 0 {
				now.Composite = float64(rng.IntN(1001)) / 10
			}
			got := tables.Compare(now, &rec)
			var peers []scoring.Record
			var composites []float64
			var want Comparison
			for _, other := range records {
				if other.Domain == rec.Domain || !scoring.KeyOf(rec).Peers() || scoring.KeyOf(other) != scoring.KeyOf(rec) {
					continue
				}
				peers = append(peers, other)
				composites = append(composites, other.Composite)
				if other.Composite > now.Composite {
					want.Rank++
				}
				switch {
				case other.Composite < now.Composite:
					want.Percentile++
				case other.Composite == now.Composite:
					want.Percentile += 0.5
				}
				want.BucketMeans.TeamStructure += other.Buckets.TeamStructure
				want.BucketMeans.MarketPosition += other.Buckets.MarketPosition
				want.BucketMeans.MomentumTailwinds += other.Buckets.MomentumTailwinds
				want.BucketMeans.FinancialHealth += other.Buckets.FinancialHealth
			}
			want.Stats = slow(composites)
			if c := float64(len(peers)); c > 0 {
				want.Rank++
				want.Percentile *= 100 / c
				want.BucketMeans.TeamStructure /= c
				want.BucketMeans.MarketPosition /= c
				want.BucketMeans.MomentumTailwinds /= c
				want.BucketMeans.FinancialHealth /= c
			}
			members := got.Members
			got.Members = nil
			if diff := cmp.Diff(want, got, nearly); diff != "" {
				t.Fatalf("%s of %d: %s", rec.Domain, n, diff)
			}
			if len(members) != min(len(peers), MembersShown) {
				t.Fatalf("%d members shown of %d peers", len(members), len(peers))
			}
			for i, m := range members {
				if m.Domain == rec.Domain || i > 0 && m.Composite > members[i-1].Composite {
					t.Fatalf("member %d of %s is %+v", i, rec.Domain, m)
				}
			}
		}
	}
}

func TestUncountedTargetTakesNobodyOut(t *testing.T) {
	t.Parallel()
	tables, _ := pair(t)
	target := scoring.Record{Domain: "new.com", Composite: 50, Sector: "software", GeoScope: "global", Profile: scoring.ProfileGrowth,
		PipelineVersion: scoring.PipelineVersion}
	elsewhere := target // where it was counted
	elsewhere.Sector = "media"
	for name, counted := range map[string]*scoring.Record{"not counted": nil, "counted in another cohort": &elsewhere} {
		got := tables.Compare(target, counted)
		if got.Count != 2 || got.Mean != 50 || got.Rank != 2 || got.Percentile != 50 || len(got.Members) != 2 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// pair is a cohort of two companies with composites 40 and 60.
func pair(t *testing.T) (*Tables, []scoring.Record) {
	t.Helper()
	records := []scoring.Record{{Domain: "a.com", Composite: 40}, {Domain: "b.com", Composite: 60}}
	for i := range records {
		records[i].Sector, records[i].GeoScope, records[i].Profile, records[i].PipelineVersion = "software", "global",
			scoring.ProfileGrowth, scoring.PipelineVersion
	}
	tables, err := New(Snapshot{Counts: Count(records, at)})
	if err != nil {
		t.Fatal(err)
	}
	return tables, records
}

func TestUnknownIsNothingInCommon(t *testing.T) {
	t.Parallel()
	_, records := pair(t)
	for name, spoil := range map[string]func(*scoring.Record){
		"sector":           func(r *scoring.Record) { r.Sector = scoring.Unknown },
		"reach":            func(r *scoring.Record) { r.GeoScope = scoring.Unknown },
		"profile":          func(r *scoring.Record) { r.Profile = scoring.ProfileUnclassified },
		"pipeline version": func(r *scoring.Record) { r.PipelineVersion = "v0" },
	} {
		spoilt := slices.Clone(records)
		for i := range spoilt {
			spoil(&spoilt[i])
		}
		tables, err := New(Snapshot{Counts: Count(spoilt, at)})
		if err != nil {
			t.Fatal(err)
		}
		if got := tables.Compare(spoilt[0], &spoilt[0]); !cmp.Equal(got, Comparison{}) {
			t.Errorf("%s: %+v", name, got)
		}
		if tables.Distribution().Count != 2 {
			t.Errorf("%s: %d companies are counted", name, tables.Distribution().Count)
		}
	}
}

func TestCountedTellsWhichRecordsWereRead(t *testing.T) {
	t.Parallel()
	tables, err := New(Snapshot{Counts: Counts{PipelineVersion: scoring.PipelineVersion, At: at, Settled: at.Add(-time.Minute),
		Recent: []uint64{3, 7, 9}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		id      uint64
		version string
		written time.Duration // before the count
		want    bool
	}{
		"long before":          {1, scoring.PipelineVersion, time.Hour, true},
		"recent and read":      {7, scoring.PipelineVersion, time.Second, true},
		"recent and not read":  {8, scoring.PipelineVersion, time.Second, false},
		"at the edge":          {8, scoring.PipelineVersion, time.Minute, false},
		"after the count":      {8, scoring.PipelineVersion, -time.Hour, false},
		"read by a fast clock": {9, scoring.PipelineVersion, -time.Second, true},
		"another version":      {7, "v0", time.Hour, false},
	} {
		if got := tables.Counted(Stored{Record: scoring.Record{PipelineVersion: c.version}, ID: c.id,
			WrittenAt: at.Add(-c.written)}); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestInconsistentCountsAreRefused(t *testing.T) {
	t.Parallel()
	good := Count(randomRecords(rand.New(rand.NewPCG(5, 6)), 50), at)
	steps := func(c *Counts, steps ...StepCount) {
		c.Cohorts = slices.Clone(c.Cohorts)
		c.Cohorts[0].Steps = steps
	}
	for name, spoil := range map[string]func(*Counts){
		"premium lost":    func(c *Counts) { c.PremiumHist[0]++ },
		"cohort twice":    func(c *Counts) { c.Cohorts = append(slices.Clone(c.Cohorts), c.Cohorts[0]) },
		"steps unsorted":  func(c *Counts) { steps(c, StepCount{5, 1}, StepCount{5, 1}) },
		"step off scale":  func(c *Counts) { steps(c, StepCount{maxStep + 1, 1}) },
		"negative step":   func(c *Counts) { steps(c, StepCount{-1, 1}) },
		"empty step":      func(c *Counts) { steps(c, StepCount{1, 0}) },
		"unknown profile": func(c *Counts) { c.Cohorts = slices.Clone(c.Cohorts); c.Cohorts[0].Profile = "odd" },
	} {
		c := good
		spoil(&c)
		if _, err := New(Snapshot{Counts: c}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestTiedCompaniesShareTheMiddle(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ below, tied, above, want int }{
		{0, 1, 0, 0}, {0, 2, 0, 50}, {0, 5, 0, 50}, {0, 40, 60, 19}, {60, 40, 0, 80}, {3, 2, 1, 70}, {9, 1, 0, 100},
	} {
		var records []scoring.Record
		for composite, n := range map[float64]int{30: c.below, 50: c.tied, 70: c.above} {
			for range n {
				records = append(records, scoring.Record{Composite: composite, PipelineVersion: scoring.PipelineVersion,
					Profile: scoring.ProfileGrowth})
			}
		}
		tables, err := New(Snapshot{Counts: Count(records, at)})
		if err != nil {
			t.Fatal(err)
		}
		if got, n := tables.Rank(50); got != c.want || n != int64(len(records)) {
			t.Errorf("%d below, %d tied, %d above: percentile %d of %d, want %d", c.below, c.tied, c.above, got, n, c.want)
		}
	}
}

func TestRankAllocatesNothing(t *testing.T) {
	tables, err := New(Snapshot{Counts: Count(randomRecords(rand.New(rand.NewPCG(9, 10)), 100), at)})
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { tables.Rank(50.1) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
