package universe

import (
	"errors"
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
			Domain: fmt.Sprintf("c%d.com", i), CompanyName: fmt.Sprint("Company ", i), Composite: composite, Rating: scoring.RatingOf(composite),
			ScalePremium: tenth(0, 120), Profile: profiles[rng.IntN(3)], Sector: fmt.Sprint("s", rng.IntN(2)), GeoScope: "global",
			Buckets: scoring.BucketScores{TeamStructure: tenth(0, 1000), MarketPosition: tenth(0, 1000), MomentumTailwinds: tenth(0, 1000), FinancialHealth: tenth(0, 1000)},
		}
	}
	return records
}

// slow describes values one by one, as the definitions say.
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
		tables, err := New(Count(records, at))
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
			below := 0
			for _, c := range composites {
				if c < r.Composite {
					below++
				}
			}
			percentile, size := tables.Rank(r.Composite)
			if want := 100 * below / max(n-1, 1); percentile != want || size != int64(n) {
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
		tables, err := New(Count(records, at))
		if err != nil {
			t.Fatal(err)
		}
		for _, rec := range records[:min(n, 60)] {
			now := Target{rec.Domain, float64(rng.IntN(1001)) / 10, rec.Buckets} // rescored since
			got := tables.Compare(GroupKey{rec.Sector, rec.GeoScope, rec.Profile}, now, &Target{rec.Domain, rec.Composite, rec.Buckets})
			var peers []scoring.Record
			var composites []float64
			var want Comparison
			for _, other := range records {
				if other.Domain == rec.Domain || rec.Profile == scoring.ProfileUnclassified ||
					(GroupKey{other.Sector, other.GeoScope, other.Profile}) != (GroupKey{rec.Sector, rec.GeoScope, rec.Profile}) {
					continue
				}
				peers = append(peers, other)
				composites = append(composites, other.Composite)
				if other.Composite > now.Composite {
					want.Rank++
				}
				if other.Composite < now.Composite {
					want.Percentile++
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
	records := []scoring.Record{
		{Domain: "a.com", Composite: 40, Profile: scoring.ProfileGrowth}, {Domain: "b.com", Composite: 60, Profile: scoring.ProfileGrowth},
	}
	tables, err := New(Count(records, at))
	if err != nil {
		t.Fatal(err)
	}
	got := tables.Compare(GroupKey{Profile: scoring.ProfileGrowth}, Target{Domain: "new.com", Composite: 50}, nil)
	if got.Count != 2 || got.Mean != 50 || got.Rank != 2 || got.Percentile != 50 {
		t.Errorf("got %+v", got)
	}
}

func TestSnapshotsThatDoNotAddUpAreRefused(t *testing.T) {
	t.Parallel()
	good := Count(randomRecords(rand.New(rand.NewPCG(5, 6)), 50), at)
	for name, spoil := range map[string]func(*Snapshot){
		"premium lost":   func(s *Snapshot) { s.PremiumHist[0]++ },
		"group twice":    func(s *Snapshot) { s.Groups = append(slices.Clone(s.Groups), s.Groups[0]) },
		"steps unsorted": func(s *Snapshot) { s.Groups = slices.Clone(s.Groups); s.Groups[0].Steps = []StepCount{{5, 1}, {5, 1}} },
		"step off scale": func(s *Snapshot) {
			s.Groups = slices.Clone(s.Groups)
			s.Groups[0].Steps = []StepCount{{maxStep + 1, 1}}
		},
		"negative step":   func(s *Snapshot) { s.Groups = slices.Clone(s.Groups); s.Groups[0].Steps = []StepCount{{-1, 1}} },
		"empty step":      func(s *Snapshot) { s.Groups = slices.Clone(s.Groups); s.Groups[0].Steps = []StepCount{{1, 0}} },
		"unknown profile": func(s *Snapshot) { s.Groups = slices.Clone(s.Groups); s.Groups[0].Profile = "odd" },
	} {
		s := good
		spoil(&s)
		if _, err := New(s); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestSnapshotSurvivesItsEncoding(t *testing.T) {
	t.Parallel()
	want := Count(randomRecords(rand.New(rand.NewPCG(7, 8)), 8), at)
	want.Movers = map[Window]Movers{Week: {Start: at, End: at, Gainers: []Mover{{Domain: "a.com", Now: 2, Then: 1}}}}
	b, err := Encode(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for i := range b {
		if i == 8 || i == 9 {
			continue // the header's notes on compression and system carry nothing
		}
		spoilt := slices.Clone(b)
		spoilt[i] ^= 0x10
		if got, err := Decode(spoilt); err == nil && !cmp.Equal(want, got) {
			t.Fatalf("byte %d changed and nobody noticed", i)
		}
	}
	if _, err := Decode(b[:len(b)/2]); !errors.Is(err, ErrFormat) {
		t.Errorf("half of it: %v", err)
	}
}

func TestRankAllocatesNothing(t *testing.T) {
	tables, err := New(Count(randomRecords(rand.New(rand.NewPCG(9, 10)), 100), at))
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { tables.Rank(50.1) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzDecode(f *testing.F) {
	b, err := Encode(Count(randomRecords(rand.New(rand.NewPCG(1, 1)), 5), at))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Decode(b)
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Fatal(err)
			}
			return
		}
		if tables, err := New(s); err == nil {
			tables.Rank(50)
			tables.Distribution()
		}
	})
}
