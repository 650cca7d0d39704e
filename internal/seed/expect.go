package seed

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"companyscore/scoring"
)

// Expected has the expected statistics of a universe, computed per company without a store. A
// percentile is the smallest value with at least that share of all values at or below it.
// Standard deviations are those of the population.
type Expected struct {
	Stats
	Records       int64            `json:"records"`
	CompositeHist [20]int64        `json:"composite_hist"`     // bins of 5, 100 in the last
	PremiumHist   [12]int64        `json:"scale_premium_hist"` // bins of 1, 12 in the last
	Ratings       map[string]int64 `json:"rating_dist"`
	Profiles      map[string]int64 `json:"profile_split"`
	Cohorts       []ExpectedCohort `json:"cohorts"` // all of sector, reach and profile, in their order
	Movers        []ExpectedMovers `json:"movers"`
}

// Stats describes composites.
type Stats struct {
	Count  int64   `json:"count"`
	Mean   float64 `json:"mean"`
	Stddev float64 `json:"stddev"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	P50    float64 `json:"p50"`
	P90    float64 `json:"p90"`
}

// ExpectedCohort has the expected statistics of a cohort.
type ExpectedCohort struct {
	Sector   string `json:"sector"`
	GeoScope string `json:"geo_scope"`
	Profile  string `json:"profile"`
	Stats
	BucketMeans scoring.BucketScores `json:"bucket_means"`
}

// ExpectedMovers are the expected movers of a window: the largest deltas between the last record
// before it and the last one within it. Equal deltas are in the order of domain.
type ExpectedMovers struct {
	Days      int             `json:"days"`
	Eligible  int64           `json:"eligible"` // companies with a record before and one within
	Moved     int64           `json:"moved"`    // those of them whose composite changed by 5 points or more
	Gainers   []ExpectedMover `json:"gainers"`
	Decliners []ExpectedMover `json:"decliners"`
}

// ExpectedMover is one company whose composite changed.
type ExpectedMover struct {
	Domain string  `json:"domain"`
	Now    float64 `json:"composite_now"`
	Then   float64 `json:"composite_then"`
	tenths int
}

// moversShown is the number of gainers and of decliners.
const moversShown = 20

// tenths returns a composite, premium or bucket score in tenths.
func tenths(x float64) int { return int(math.Round(10 * x)) }

// Expect returns the statistics of a universe at a time that is not before its Until. Ten
// million companies take a minute.
func Expect(u Universe, at time.Time) Expected {
	cast, mix := NewCast(u.Seed), hash64(u.Seed)
	played := make([]int64, families*phases) // companies whose youngest record is of each phase
	movers := []*ranking{{days: 7}, {days: 30}, {days: 90}}
	ages := make([]time.Time, u.Records)
	for i := range uint64(u.Domains) {
		now := position(mix, i, 0)
		played[i%families*phases+phase(now)]++
		for j := range ages {
			ages[j] = u.scoredAt(mix, i, j)
		}
		family := cast.family(i)
		for _, r := range movers {
			start := at.Add(-time.Duration(r.days) * day)
			j := slices.IndexFunc(ages, func(t time.Time) bool { return t.Before(start) })
			if j > 0 {
				r.add(cast.names, i, family[phase(now)].Record.Composite, family[phase(position(mix, i, j))].Record.Composite)
			}
		}
	}

	e := Expected{Records: int64(u.Domains) * int64(u.Records), Ratings: make(map[string]int64), Profiles: make(map[string]int64)}
	type group struct{ sector, geo, profile string }
	all, cohorts := newTally(), make(map[group]*tally)
	for f := range uint64(min(u.Domains, families)) {
		for v, p := range cast.family(f) {
			n, rec := played[f*phases+uint64(v)], p.Record
			if n == 0 {
				continue
			}
			all.add(rec, n)
			e.CompositeHist[min(tenths(rec.Composite)/50, 19)] += n
			e.PremiumHist[min(tenths(rec.ScalePremium)/10, 11)] += n
			e.Ratings[string(rec.Rating)] += n
			e.Profiles[string(rec.Profile)] += n
			key := group{rec.Sector, rec.GeoScope, string(rec.Profile)}
			if cohorts[key] == nil {
				cohorts[key] = newTally()
			}
			cohorts[key].add(rec, n)
		}
	}
	e.Stats = all.stats()
	for key, t := range cohorts {
		e.Cohorts = append(e.Cohorts, ExpectedCohort{key.sector, key.geo, key.profile, t.stats(), t.bucketMeans()})
	}
	slices.SortFunc(e.Cohorts, func(a, b ExpectedCohort) int {
		return cmp.Or(cmp.Compare(a.Sector, b.Sector), cmp.Compare(a.GeoScope, b.GeoScope), cmp.Compare(a.Profile, b.Profile))
	})
	for _, r := range movers {
		e.Movers = append(e.Movers, ExpectedMovers{r.days, r.eligible, r.moved, r.sides[0], r.sides[1]})
	}
	return e
}

// tally has counts of records.
type tally struct {
	composites map[int]int64 // by tenths
	buckets    map[scoring.Bucket]int64
}

func newTally() *tally {
	return &tally{make(map[int]int64), make(map[scoring.Bucket]int64)}
}

func (t *tally) add(rec scoring.Record, n int64) {
	t.composites[tenths(rec.Composite)] += n
	for _, b := range scoring.Buckets() {
		t.buckets[b] += n * int64(tenths(rec.Buckets.Get(b)))
	}
}

func (t *tally) stats() Stats {
	values := slices.Sorted(maps.Keys(t.composites))
	var s Stats
	var sum float64
	for _, v := range values {
		s.Count += t.composites[v]
		sum += float64(t.composites[v]) * float64(v) / 10
	}
	s.Mean = sum / float64(s.Count)
	var squares float64
	for _, v := range values {
		squares += float64(t.composites[v]) * math.Pow(float64(v)/10-s.Mean, 2)
	}
	s.Stddev = math.Sqrt(squares / float64(s.Count))
	s.Min, s.Max = float64(values[0])/10, float64(values[len(values)-1])/10
	share := func(percent int64) float64 {
		var seen int64
		for _, v := range values {
			if seen += t.composites[v]; 100*seen >= percent*s.Count {
				return float64(v) / 10
			}
		}
		return s.Max
	}
	s.P50, s.P90 = share(50), share(90)
	return s
}

func (t *tally) bucketMeans() scoring.BucketScores {
	var n int64
	for _, c := range t.composites {
		n += c
	}
	mean := func(b scoring.Bucket) float64 { return float64(t.buckets[b]) / 10 / float64(n) }
	return scoring.BucketScores{
		TeamStructure: mean(scoring.TeamStructure), MarketPosition: mean(scoring.MarketPosition),
		MomentumTailwinds: mean(scoring.MomentumTailwinds), FinancialHealth: mean(scoring.FinancialHealth),
	}
}

// ranking collects the movers of a window.
type ranking struct {
	days            int
	eligible, moved int64
	sides           [2][]ExpectedMover // gainers and decliners, in their order
}

func (r *ranking) add(names Names, i uint64, now, then float64) {
	r.eligible++
	delta := tenths(now) - tenths(then)
	if delta >= 50 || delta <= -50 {
		r.moved++
	}
	side, size := &r.sides[0], delta
	if delta < 0 {
		side, size = &r.sides[1], -delta
	}
	if size == 0 || len(*side) == moversShown && size < (*side)[moversShown-1].tenths {
		return
	}
	m := ExpectedMover{string(names.AppendDomain(nil, i)), now, then, size}
	at, _ := slices.BinarySearchFunc(*side, m, func(a, b ExpectedMover) int {
		return cmp.Or(cmp.Compare(b.tenths, a.tenths), cmp.Compare(a.Domain, b.Domain))
	})
	*side = slices.Insert(*side, at, m)
	*side = (*side)[:min(len(*side), moversShown)]
}
