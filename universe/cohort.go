package universe

import (
	"math"
	"slices"
	"time"

	"companyscore/scoring"
)

// Target is the company that a cohort is compared with.
type Target struct {
	Domain    string
	Composite float64
	Buckets   scoring.BucketScores
}

// Counted is a company as tables count it.
type Counted struct {
	Target
	// Group is the [Group.ID] of the group it is counted in.
	Group uint64
	// ScoredAt is that of the record that is counted.
	ScoredAt time.Time
}

// insertMax is longer than any insert lasts, from when its records are written to when
// a count can see them.
const insertMax = 5 * time.Minute

// CountedAs returns how the tables count a company whose newest record was written at
// an instant, in UTC. It reports false if only the store can tell: the record is of another
// version, or so new that the count may have missed it.
func (t *Tables) CountedAs(newest scoring.Record, written time.Time) (*Counted, bool) {
	g := t.groups[GroupKey{newest.Sector, newest.GeoScope, newest.Profile}]
	if g == nil || newest.PipelineVersion != t.PipelineVersion() || newest.ScoredAt.After(t.Cut()) || written.After(t.Cut().Add(-insertMax)) {
		return nil, false
	}
	return &Counted{Target{newest.Domain, newest.Composite, newest.Buckets}, g.ID, newest.ScoredAt}, true
}

// CountedIn reports whether the tables count a company in a group.
func (t *Tables) CountedIn(c *Counted, key GroupKey) bool {
	g := t.groups[key]
	return c != nil && g != nil && g.ID == c.Group
}

// Comparison sets a company beside its cohort, itself left out.
type Comparison struct {
	Stats
	// Rank of the target, 1 for the highest composite; 0 without peers.
	Rank int64
	// Percentile is the share of the peers strictly below the target, 0 to 100.
	Percentile float64
	// BucketMeans are those of the peers; 0 without peers.
	BucketMeans scoring.BucketScores
	// Members are the peers with the highest composites, at most MembersShown.
	Members []Member
}

// Compare sets a company as it is now beside the cohort of a group. counted is
// the same company as the tables count it in that group, and is left out; nil
// when they do not count it there. A group nobody is in, and one without a
// profile, is a cohort of none.
func (t *Tables) Compare(key GroupKey, target Target, counted *Target) Comparison {
	g := t.groups[key]
	if g == nil || key.Profile == scoring.ProfileUnclassified {
		return Comparison{}
	}
	steps, sums := g.Steps, g.BucketSums
	if counted != nil {
		steps = without(steps, step(counted.Composite))
		sums = sums.minus(counted.Buckets)
	}
	c := Comparison{Stats: stats(steps)}
	if c.Count == 0 {
		return c
	}
	own := step(target.Composite)
	var below, above int64
	for _, s := range steps {
		switch {
		case s.Step < own:
			below += s.Count
		case s.Step > own:
			above += s.Count
		}
	}
	c.Rank = above + 1
	c.Percentile = 100 * float64(below) / float64(c.Count)
	c.BucketMeans = sums.means(c.Count)
	for _, m := range g.Top {
		if m.Domain != target.Domain && len(c.Members) < MembersShown {
			c.Members = append(c.Members, m)
		}
	}
	return c
}

// without returns the counts with one company less at a step.
func without(counts []StepCount, step int) []StepCount {
	i, found := slices.BinarySearchFunc(counts, step, func(c StepCount, step int) int { return c.Step - step })
	if !found {
		return counts
	}
	counts = slices.Clone(counts)
	if counts[i].Count--; counts[i].Count == 0 {
		counts = slices.Delete(counts, i, i+1)
	}
	return counts
}

func hundredths(x float64) int64 { return int64(math.Round(x * stepsPerPoint)) }

func (s BucketSums) minus(b scoring.BucketScores) BucketSums {
	s.TeamStructure -= hundredths(b.TeamStructure)
	s.MarketPosition -= hundredths(b.MarketPosition)
	s.MomentumTailwinds -= hundredths(b.MomentumTailwinds)
	s.FinancialHealth -= hundredths(b.FinancialHealth)
	return s
}

func (s BucketSums) means(n int64) scoring.BucketScores {
	mean := func(sum int64) float64 { return float64(sum) / float64(n) / stepsPerPoint }
	return scoring.BucketScores{
		TeamStructure: mean(s.TeamStructure), MarketPosition: mean(s.MarketPosition),
		MomentumTailwinds: mean(s.MomentumTailwinds), FinancialHealth: mean(s.FinancialHealth),
	}
}
