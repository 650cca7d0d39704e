// Package universe computes the statistics of all companies: rank, distribution,
// cohorts and movers. It does no I/O. The count job and the movers job produce a
// [Snapshot]; [New] converts it to the tables that servers answer from.
//
// Composites are multiples of a tenth of a point and are counted per hundredth, so
// counts, ranks and percentiles are exact. A percentile is the smallest value with at
// least that share of all values at or below it (percentile_disc of SQL). The standard
// deviation is that of the population. The percentile of a company is the share of the
// other companies below it, where each company with an equal composite counts as half below:
// the middle of the tie.
package universe

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"companyscore/scoring"
)

const (
	// stepsPerPoint is the number of steps per point: counts have steps of a hundredth.
	stepsPerPoint = 100
	maxStep       = 100 * stepsPerPoint

	// CompositeBins is the number of histogram bins of 5 points, PremiumBins of 1 point.
	CompositeBins = 20
	PremiumBins   = 12

	// MembersShown is the maximum number of members in a [Comparison].
	MembersShown = 200
	// LeaderboardMax is the maximum size of a leaderboard: one more than MembersShown,
	// because a comparison omits its target.
	LeaderboardMax = MembersShown + 1

	// MoversShown is the maximum number of gainers and of decliners in a list.
	MoversShown = 20
)

// Snapshot is the published statistics of all companies.
type Snapshot struct {
	Counts Counts
	Movers Movers
}

// Counts is the result of the count job. It counts the newest record of each company
// under one pipeline version.
type Counts struct {
	PipelineVersion string
	// Epoch is the time between the instants at which servers adopt counts, see [Adopted]; 0 if they
	// adopt counts at once.
	Epoch time.Duration
	// At is when the count began.
	At time.Time
	// MinDataPct is the lowest completeness, in percent, of counted records; 0 counts all.
	MinDataPct float64
	// Settled and Recent identify the records that the count read, see [Tables.Counted].
	Settled time.Time
	Recent  []uint64 // ids of records, sorted
	// PremiumHist counts scale premiums in bins of one point; the last includes 12.
	PremiumHist [PremiumBins]int64
	// Cohorts has all companies, including those without peers.
	Cohorts []Cohort
}

// Companies returns the number of companies.
func (c *Counts) Companies() uint64 {
	var n int64
	for _, bin := range c.PremiumHist {
		n += bin
	}
	return uint64(n)
}

// CohortKey identifies a cohort.
type CohortKey = scoring.CohortKey

// Cohort is the companies of one sector, reach and profile.
type Cohort struct {
	CohortKey
	// Steps counts the composites, in rising order of Step.
	Steps []StepCount
	// BucketSums are the sums of the bucket scores, in hundredths.
	BucketSums BucketSums
	// Leaderboard has up to LeaderboardMax companies by falling composite, then by domain.
	// It is empty if the key has no peers.
	Leaderboard []Company
}

// StepCount is the number of companies with a composite of Step hundredths.
type StepCount struct {
	Step  int
	Count int64
}

// BucketSums holds one sum per bucket.
type BucketSums struct{ TeamStructure, MarketPosition, MomentumTailwinds, FinancialHealth int64 }

// Company is a company with its composite and the share of it that rests on data, in percent.
type Company struct {
	Domain, Name    string
	Composite       float64
	CompletenessPct float64
}

// HasData reports whether any of the composite rests on data.
func (c Company) HasData() bool { return c.CompletenessPct > 0 }

// Adopted returns the first instant after now at which servers adopt what was published before: the
// multiples of epoch since 1970. They are the same on all servers. epoch must be at least 1 ms.
func Adopted(epoch time.Duration, now time.Time) time.Time {
	length := epoch.Milliseconds()
	return time.UnixMilli((now.UnixMilli()/length + 1) * length).UTC()
}

// Stored is a record with its id and the time of its write.
type Stored struct {
	scoring.Record
	// ID is a hash of domain and ScoredAt, which identify the record.
	ID        uint64
	WrittenAt time.Time
}

// Window is the time over which a delta is taken.
type Window string

// The windows, shortest first.
const (
	Week    Window = "7d"
	Month   Window = "30d"
	Quarter Window = "90d"
)

// Windows lists all windows, shortest first.
var Windows = []Window{Week, Month, Quarter}

// Length returns the duration of the window, 0 if it is not one of [Windows].
func (w Window) Length() time.Duration {
	const day = 24 * time.Hour
	return map[Window]time.Duration{Week: 7 * day, Month: 30 * day, Quarter: 90 * day}[w]
}

// Movers is the result of the movers job.
type Movers struct {
	PipelineVersion string
	Epoch           time.Duration        // as of [Counts]
	Lists           map[Window]MoverList // has every window
}

// MoverList has the companies with the largest deltas within a window. Both lists are
// sorted by falling absolute delta, then by domain.
type MoverList struct {
	Start, End         time.Time
	Gainers, Decliners []Mover
}

// Mover is a company whose composite changed. Composite is that of its last record in
// the window, Then that of its last record before the window.
type Mover struct {
	Company
	Then float64
	// Attribution splits the delta, without signals. It is nil if the company was scored while the
	// movers job ran.
	Attribution *scoring.Attribution
}

// Delta returns Composite minus Then, rounded to a tenth.
func (m Mover) Delta() float64 { return math.Round((m.Composite-m.Then)*10) / 10 }

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

// Tables compute answers from one snapshot. They are immutable and safe for concurrent
// use. Callers must not change results.
type Tables struct {
	snapshot     Snapshot
	distribution Distribution
	below        [maxStep + 2]int64 // number of companies with fewer steps
	cohorts      map[CohortKey]*Cohort
}

// New returns the tables of a snapshot. It returns an error if the counts are
// inconsistent.
func New(s Snapshot) (*Tables, error) {
	t := &Tables{snapshot: s, cohorts: make(map[CohortKey]*Cohort, len(s.Counts.Cohorts))}
	d := Distribution{PremiumHist: s.Counts.PremiumHist, Ratings: make(map[scoring.Rating]int64), Profiles: make(map[scoring.Profile]int64)}
	for _, r := range scoring.Ratings() {
		d.Ratings[r] = 0
	}
	for _, p := range []scoring.Profile{scoring.ProfileGrowth, scoring.ProfileEstablished, scoring.ProfileUnclassified} {
		d.Profiles[p] = 0
	}
	all := make(map[int]int64)
	for i := range s.Counts.Cohorts {
		c := &s.Counts.Cohorts[i]
		if t.cohorts[c.CohortKey] != nil {
			return nil, fmt.Errorf("tables of the universe: duplicate cohort %v", c.CohortKey)
		}
		t.cohorts[c.CohortKey] = c
		last := -1
		for _, s := range c.Steps {
			if s.Step <= last || s.Step > maxStep || s.Count <= 0 {
				return nil, fmt.Errorf("tables of the universe: cohort %v counts %d companies at step %d after %d", c.CohortKey, s.Count,
					s.Step, last)
			}
			last = s.Step
			all[s.Step] += s.Count
			d.CompositeHist[min(s.Step/(5*stepsPerPoint), CompositeBins-1)] += s.Count
			d.Ratings[scoring.RatingOf(points(s.Step))] += s.Count
			d.Profiles[c.Profile] += s.Count
		}
	}
	d.Stats = Describe(all)
	if int64(s.Counts.Companies()) != d.Count || len(d.Profiles) != 3 {
		return nil, errors.New("tables of the universe: the counts are inconsistent")
	}
	t.distribution = d
	for i, n := 0, int64(0); i < len(t.below); i++ {
		t.below[i] = n
		n += all[i]
	}
	return t, nil
}

// PipelineVersion returns the version of the counted records.
func (t *Tables) PipelineVersion() string { return t.snapshot.Counts.PipelineVersion }

// At returns the time when the count began.
func (t *Tables) At() time.Time { return t.snapshot.Counts.At }

// Epoch returns the epoch of the counts, see [Counts].
func (t *Tables) Epoch() time.Duration { return t.snapshot.Counts.Epoch }

// Settled returns an instant. The count read every record written before it.
func (t *Tables) Settled() time.Time { return t.snapshot.Counts.Settled }

// MinDataPct returns the lowest completeness, in percent, of counted records.
func (t *Tables) MinDataPct() float64 { return t.snapshot.Counts.MinDataPct }

// Counted reports whether the count read a record. The count used the newest of the records that it
// read of a company, if it has enough data.
func (t *Tables) Counted(r Stored) bool {
	if r.PipelineVersion != t.PipelineVersion() {
		return false
	}
	_, recent := slices.BinarySearch(t.snapshot.Counts.Recent, r.ID)
	return recent || r.WrittenAt.Before(t.Settled())
}

// Writes reads records by the time of their write. WrittenSince returns the summaries of a company
// under a pipeline version, newest first: all written since an instant, and the newest one before it.
type Writes interface {
	WrittenSince(ctx context.Context, domain, version string, since time.Time) ([]Stored, error)
}

// CountedRecord returns the record of a company that the count used, nil if it used none. It is the
// newest record, or an older one if the company was scored after the count.
func (t *Tables) CountedRecord(ctx context.Context, store Writes, newest Stored) (*scoring.Record, error) {
	if t.Counted(newest) {
		return t.withEnough(newest), nil
	}
	if newest.PipelineVersion != t.PipelineVersion() || !scoring.KeyOf(newest.Record).Peers() {
		return nil, nil // the company belongs to no cohort of the tables
	}
	records, err := store.WrittenSince(ctx, newest.Domain, newest.PipelineVersion, t.Settled())
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		if t.Counted(r) {
			return t.withEnough(r), nil
		}
	}
	return nil, nil
}

// withEnough returns the record if it has enough data to be counted, else nil.
func (t *Tables) withEnough(r Stored) *scoring.Record {
	if r.CompletenessPct < t.MinDataPct() {
		return nil
	}
	return &r.Record
}

// Rank returns the percentile of a company with the given composite among the other companies,
// 0 to 100, rounded down, and the number of all companies. It is valid only for records of
// PipelineVersion. Rank takes the company for one of those counted with this composite, if there
// are any. A company with less data than MinDataPct has no rank.
func (t *Tables) Rank(composite float64) (percentile int, companies int64) {
	companies = t.distribution.Count
	if companies == 0 {
		return 0, 0
	}
	own := step(composite)
	below := t.below[own]
	equal := max(t.below[own+1]-below-1, 0) // without the company itself
	return int(min(100*(2*below+equal)/(2*max(companies-1, 1)), 100)), companies
}

// Distribution returns the distribution of all companies.
func (t *Tables) Distribution() Distribution { return t.distribution }

// Cohorts returns the counts of all companies, including those without peers.
func (t *Tables) Cohorts() []Cohort { return t.snapshot.Counts.Cohorts }

// Movers returns the result of the movers job. It has no lists before the first run.
func (t *Tables) Movers() Movers { return t.snapshot.Movers }

// step converts points to hundredths, limited to 0 to maxStep.
func step(composite float64) int {
	return max(0, min(int(math.Round(composite*stepsPerPoint)), maxStep))
}

func points(step int) float64 { return float64(step) / stepsPerPoint }

// Describe returns the statistics of composites, given the number of companies by hundredths of a
// point.
func Describe(companies map[int]int64) Stats {
	counts := make([]StepCount, 0, len(companies))
	for _, step := range slices.Sorted(maps.Keys(companies)) {
		counts = append(counts, StepCount{step, companies[step]})
	}
	return stats(counts)
}

// stats returns the statistics of counts, which must be in rising order.
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

// percentile returns the smallest value with at least p percent of the n companies at or
// below it.
func percentile(counts []StepCount, n int64, p int64) float64 {
	var seen int64
	for _, c := range counts {
		if seen += c.Count; seen*100 >= n*p {
			return points(c.Step)
		}
	}
	return 0
}
