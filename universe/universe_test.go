package universe

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

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

// anyTally is a tally with something in every field.
func anyTally(t testing.TB) *Tally {
	t.Helper()
	tally := NewTally(scoring.PipelineVersion, 7, Limits{})
	change := Change{
		Note: 8, Position: 9, Records: 4, At: at, Names: map[uint64]GroupKey{1 << 63: {"software", "global", scoring.ProfileGrowth}, 2: {"fintech", "local", scoring.ProfileUnclassified}},
		Steps: []StepChange{{2, 5010, 1}, {1 << 63, 10, 2}, {1 << 63, 9990, 1}},
		Sums:  []SumChange{{2, BucketSums{1, 2, 3, 4}}, {1 << 63, BucketSums{10, 20, 30, 40}}},
		Come: []Standing{
			{Company: 5, Domain: "a.com", Name: "A", Cohort: 1 << 63, Composite: 9990, Delta: [3]int{0, 990, -10}},
			{Company: 6, Domain: "b.com", Name: "B", Cohort: 1 << 63, Composite: 10},
		},
	}
	change.Premium[0], change.Premium[11] = 3, 1
	if err := tally.Add(change); err != nil {
		t.Fatal(err)
	}
	tally.Full = at.Add(-time.Hour)
	tally.Show(Month)
	return tally
}

func TestTallySurvivesItsEncoding(t *testing.T) {
	t.Parallel()
	want := anyTally(t)
	b := Encode(want)
	got, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Tally{}), cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
	if again := Encode(got); !bytes.Equal(again, b) {
		t.Error("encoded again it is not the same")
	}
	for i := range b {
		spoilt := slices.Clone(b)
		spoilt[i] ^= 0x10
		if _, err := Decode(spoilt); !errors.Is(err, ErrFormat) {
			t.Fatalf("byte %d changed: %v", i, err)
		}
		if _, err := Decode(b[:i]); !errors.Is(err, ErrFormat) {
			t.Fatalf("cut off at %d: %v", i, err)
		}
	}
}

func TestImpossibleChangesAreRefused(t *testing.T) {
	t.Parallel()
	var premium [PremiumBins]int64
	premium[3] = -1
	for name, c := range map[string]Change{
		"nobody is left":      {Steps: []StepChange{{2, 5010, -2}}},
		"nobody was there":    {Steps: []StepChange{{2, 5020, -1}}},
		"a cohort of no name": {Steps: []StepChange{{77, 5020, 1}}},
		"sums of no cohort":   {Sums: []SumChange{{77, BucketSums{}}}},
		"premiums of nobody":  {Premium: premium},
	} {
		if err := anyTally(t).Add(c); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestCohortOfNobodyIsForgotten(t *testing.T) {
	t.Parallel()
	tally := anyTally(t)
	if err := tally.Add(Change{Steps: []StepChange{{2, 5010, -1}}, Sums: []SumChange{{2, BucketSums{-1, -2, -3, -4}}}}); err != nil || tally.Cohorts[2] != nil {
		t.Errorf("%v, %+v", err, tally.Cohorts[2])
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
	f.Add(Encode(anyTally(f)))
	f.Add(Encode(NewTally("", 0, Limits{})))
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		// Without the right checksum nothing behind it would ever be reached.
		if len(b) >= 4 {
			b = binary.LittleEndian.AppendUint32(b[:len(b)-4:len(b)-4], crc32.Checksum(b[:len(b)-4], castagnoli))
		}
		tally, err := Decode(b)
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Fatal(err)
			}
			return
		}
		again, err := Decode(Encode(tally))
		if err != nil || tally.Differs(again) != "" {
			t.Fatalf("it does not survive its encoding: %v", err)
		}
		if tables, err := New(tally.Snapshot()); err == nil {
			tables.Rank(50)
			tables.Distribution()
		}
	})
}

func TestTablesTellHowTheyCountOldRecordsOnly(t *testing.T) {
	t.Parallel()
	cut := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	rec := scoring.Record{
		Domain: "example.com", PipelineVersion: scoring.PipelineVersion, ScoredAt: cut.Add(-time.Hour), Composite: 61.4,
		Buckets: scoring.BucketScores{TeamStructure: 58.1}, Profile: scoring.ProfileGrowth, Sector: "software",
	}
	tables, err := New(Count([]scoring.Record{rec, {Domain: "other.com", Composite: 50, Profile: scoring.ProfileGrowth, Sector: "software"}}, cut))
	if err != nil {
		t.Fatal(err)
	}
	hourAgo := cut.Add(-time.Hour)
	for name, c := range map[string]struct {
		spoil   func(r *scoring.Record)
		written time.Time
		known   bool
	}{
		"an hour old":          {func(*scoring.Record) {}, hourAgo, true},
		"written just before":  {func(*scoring.Record) {}, cut.Add(-time.Minute), false},
		"written since":        {func(*scoring.Record) {}, cut.Add(time.Minute), false},
		"made later":           {func(r *scoring.Record) { r.ScoredAt = cut.Add(time.Millisecond) }, hourAgo, false},
		"of another version":   {func(r *scoring.Record) { r.PipelineVersion = "v0" }, hourAgo, false},
		"of a group of nobody": {func(r *scoring.Record) { r.Sector = "mining" }, hourAgo, false},
	} {
		r := rec
		c.spoil(&r)
		counted, known := tables.CountedAs(r, c.written)
		if known != c.known || known != (counted != nil) {
			t.Errorf("%s: %+v, %v", name, counted, known)
		}
		if known && (counted.Domain != r.Domain || counted.Composite != r.Composite || counted.Buckets != r.Buckets || !counted.ScoredAt.Equal(r.ScoredAt) ||
			!tables.CountedIn(counted, GroupKey{Sector: r.Sector, GeoScope: r.GeoScope, Profile: r.Profile})) {
			t.Errorf("%s: counted as %+v", name, counted)
		}
	}
}
