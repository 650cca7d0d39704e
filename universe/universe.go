// Package universe holds what is known of all companies together: how many have
// which score, how each group of peers is made up, and whose score moved most.
// It is pure: a [Snapshot] is counted elsewhere, and [New] makes of it tables
// that answer from memory.
//
// Composites have steps of a tenth of a point and are counted per hundredth, so
// that counts, ranks and percentiles are exact. One definition of each statistic
// holds everywhere: a percentile is the smallest value that has at least that
// share of all values at or below it (as percentile_disc of SQL), the standard
// deviation is that of the whole population, and a company's percentile is the
// share of the others that are strictly below it.
package universe

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"companyscore/scoring"
)

const (
	// stepsPerPoint is the precision of everything that is counted.
	stepsPerPoint = 100
	maxStep       = 100 * stepsPerPoint

	// CompositeBins of 5 points and PremiumBins of 1 point make the histograms.
	CompositeBins = 20
	PremiumBins   = 12

	// MembersShown is how many members a cohort shows. One more is kept, for when
	// the target is among them.
	MembersShown = 200
	MembersKept  = MembersShown + 1

	// MoversShown is how many gainers, and how many decliners, are listed.
	MoversShown = 20
)

// Snapshot is what was counted, at one time, of all companies whose newest record
// is of one pipeline version. It is what travels between processes.
type Snapshot struct {
	PipelineVersion string
	// Generation and Note name the count that this is; see [Tally].
	Generation, Note uint64
	// Cut is the instant up to which records are counted, by the time they were made.
	Cut time.Time
	// PremiumHist counts scale premiums in bins of one point; the last includes 12.
	PremiumHist [PremiumBins]int64
	// Groups are all companies, those without a profile too.
	Groups []Group
	Movers map[Window]Movers
}

// GroupKey is what the companies of a group have in common.
type GroupKey struct {
	Sector, GeoScope string
	Profile          scoring.Profile
}

// Group is the companies of one sector, reach and profile. Those with a profile
// are the cohort of each of them.
type Group struct {
	GroupKey
	// ID is what the store calls the group, 0 where nobody asks it.
	ID uint64
	// Steps counts the composites, in rising order of Step.
	Steps []StepCount
	// BucketSums are the sums of the bucket scores, in hundredths.
	BucketSums BucketSums
	// Top are the members with the highest composites, at most MembersKept,
	// highest first and then by domain.
	Top []Member
}

// StepCount is how many companies have a composite of Step hundredths.
type StepCount struct {
	Step  int
	Count int64
}

// BucketSums holds one sum per bucket.
type BucketSums struct{ TeamStructure, MarketPosition, MomentumTailwinds, FinancialHealth int64 }

// Member is a company as others see it in their cohort.
type Member struct {
	Domain, CompanyName string
	Composite           float64
	Rating              scoring.Rating
}

// Window is the time over which a change is measured.
type Window string

// The windows, shortest first.
const (
	Week    Window = "7d"
	Month   Window = "30d"
	Quarter Window = "90d"
)

// Windows lists all windows, shortest first.
var Windows = []Window{Week, Month, Quarter}

// Length is how long the window is, 0 for one that is none of [Windows].
func (w Window) Length() time.Duration {
	const day = 24 * time.Hour
	return map[Window]time.Duration{Week: 7 * day, Month: 30 * day, Quarter: 90 * day}[w]
}

// Movers lists whose composite changed most between the last record before the
// window and the last within it. Both lists have the largest change first and
// then go by domain.
type Movers struct {
	Start, End         time.Time
	Gainers, Decliners []Mover
}

// Mover is a company whose composite changed.
type Mover struct {
	Domain, CompanyName   string
	Now, Then             float64
	RatingNow, RatingThen scoring.Rating
}

// Delta is how much the composite changed, in steps of a tenth.
func (m Mover) Delta() float64 { return math.Round((m.Now-m.Then)*10) / 10 }

// Stats describes composites. All numbers are 0 when there are none.
type Stats struct {
	Count                            int64
	Mean, P50, P90, Stddev, Min, Max float64
}

// Distribution describes all companies.
type Distribution struct {
	Stats
	// CompositeHist has bins of 5 points, the last of which includes 100.
	CompositeHist [CompositeBins]int64
	PremiumHist   [PremiumBins]int64
	Ratings       map[scoring.Rating]int64  // has every rating
	Profiles      map[scoring.Profile]int64 // has every profile
}

// Tables answer from one snapshot. They never change and may be used
// concurrently; what they return must not be changed.
type Tables struct {
	snapshot     Snapshot
	distribution Distribution
	below        [maxStep + 2]int64 // companies with fewer steps
	groups       map[GroupKey]*Group
}

// New returns the tables of a snapshot, or an error that says in what it does
// not hold together.
func New(s Snapshot) (*Tables, error) {
	t := &Tables{snapshot: s, groups: make(map[GroupKey]*Group, len(s.Groups))}
	d := Distribution{PremiumHist: s.PremiumHist, Ratings: make(map[scoring.Rating]int64), Profiles: make(map[scoring.Profile]int64)}
	for _, r := range scoring.Ratings() {
		d.Ratings[r] = 0
	}
	for _, p := range []scoring.Profile{scoring.ProfileGrowth, scoring.ProfileEstablished, scoring.ProfileUnclassified} {
		d.Profiles[p] = 0
	}
	all := make(map[int]int64)
	for i := range s.Groups {
		g := &s.Groups[i]
		if t.groups[g.GroupKey] != nil {
			return nil, fmt.Errorf("tables of the universe: group %v stands twice", g.GroupKey)
		}
		t.groups[g.GroupKey] = g
		last := -1
		for _, c := range g.Steps {
			if c.Step <= last || c.Step > maxStep || c.Count <= 0 {
				return nil, fmt.Errorf("tables of the universe: group %v counts %d companies at step %d after %d", g.GroupKey, c.Count, c.Step, last)
			}
			last = c.Step
			all[c.Step] += c.Count
			d.CompositeHist[min(c.Step/(5*stepsPerPoint), CompositeBins-1)] += c.Count
			d.Ratings[scoring.RatingOf(points(c.Step))] += c.Count
			d.Profiles[g.Profile] += c.Count
		}
	}
	counts := make([]StepCount, 0, len(all))
	for _, step := range slices.Sorted(maps.Keys(all)) {
		counts = append(counts, StepCount{step, all[step]})
	}
	d.Stats = stats(counts)
	var premiums int64
	for _, n := range s.PremiumHist {
		premiums += n
	}
	if premiums != d.Count || len(d.Profiles) != 3 {
		return nil, errors.New("tables of the universe: the counts do not add up")
	}
	t.distribution = d
	for i, n := 0, int64(0); i < len(t.below); i++ {
		t.below[i] = n
		n += all[i]
	}
	return t, nil
}

// Snapshot returns what the tables were made of.
func (t *Tables) Snapshot() Snapshot { return t.snapshot }

// PipelineVersion is the version whose records are counted.
func (t *Tables) PipelineVersion() string { return t.snapshot.PipelineVersion }

// Count names the count that the tables are of: a count of everything, and the last
// batch since.
func (t *Tables) Count() (generation, note uint64) {
	return t.snapshot.Generation, t.snapshot.Note
}

// Cut is the instant up to which records are counted, by when they were made.
func (t *Tables) Cut() time.Time { return t.snapshot.Cut }

// Rank returns the share of the other companies that are strictly below a
// composite, 0 to 100, rounded down, and the number of all companies.
func (t *Tables) Rank(composite float64) (percentile int, companies int64) {
	companies = t.distribution.Count
	if companies == 0 {
		return 0, 0
	}
	below := t.below[step(composite)]
	return int(min(100*below/max(companies-1, 1), 100)), companies
}

// Distribution describes all companies.
func (t *Tables) Distribution() Distribution { return t.distribution }

// Movers returns the movers of a window, false for one that is none of [Windows].
func (t *Tables) Movers(w Window) (Movers, bool) {
	if w.Length() == 0 {
		return Movers{}, false
	}
	return t.snapshot.Movers[w], true
}

// step turns points into hundredths within the scale.
func step(composite float64) int {
	return max(0, min(int(math.Round(composite*stepsPerPoint)), maxStep))
}

func points(step int) float64 { return float64(step) / stepsPerPoint }

// stats describes counts in rising order.
func stats(counts []StepCount) Stats {
	var s Stats
	var sum, squares int64
	for _, c := range counts {
		s.Count += c.Count
		sum += c.Count * int64(c.Step)
		squares += c.Count * int64(c.Step) * int64(c.Step)
	}
	if s.Count == 0 {
		return s
	}
	n := float64(s.Count)
	mean := float64(sum) / n
	s.Mean = mean / stepsPerPoint
	s.Stddev = math.Sqrt(max(float64(squares)/n-mean*mean, 0)) / stepsPerPoint
	s.Min, s.Max = points(counts[0].Step), points(counts[len(counts)-1].Step)
	s.P50, s.P90 = percentile(counts, s.Count, 50), percentile(counts, s.Count, 90)
	return s
}

// percentile returns the smallest value with at least p percent of n counts at
// or below it.
func percentile(counts []StepCount, n int64, p int64) float64 {
	var seen int64
	for _, c := range counts {
		if seen += c.Count; seen*100 >= n*p {
			return points(c.Step)
		}
	}
	return 0
}
