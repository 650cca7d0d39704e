package universe

import (
	"math"
	"slices"

	"companyscore/scoring"
)

// Comparison compares a company, the target, with the others of its cohort, its peers.
type Comparison struct {
	Stats
	// Rank of the target, 1 for the highest composite; 0 without peers.
	Rank int64
	// Percentile is the share of the peers below the target, 0 to 100. A peer with an equal
	// composite counts as half below.
	Percentile float64
	// BucketMeans are the means of the peers; 0 without peers.
	BucketMeans scoring.BucketScores
	// Members has up to MembersShown peers, highest composite first.
	Members []Company
}

// Stats returns the statistics of the composites of the cohort.
func (c *Cohort) Stats() Stats { return stats(c.Steps) }

// Compare compares the newest record of a company, the target, with its cohort.
// counted is the record of the same company that the count used, nil if none; Compare
// removes it from the cohort. The result is zero if the target has another pipeline
// version or a cohort key without peers.
func (t *Tables) Compare(target scoring.Record, counted *scoring.Record) Comparison {
	key := scoring.KeyOf(target)
	cohort := t.cohorts[key]
	if cohort == nil || !key.Peers() || target.PipelineVersion != t.PipelineVersion() {
		return Comparison{}
	}
	steps, sums := cohort.Steps, cohort.BucketSums
	if counted != nil && scoring.KeyOf(*counted) == key {
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
	equal := c.Count - below - above
	c.Percentile = 100 * (float64(below) + float64(equal)/2) / float64(c.Count)
	c.BucketMeans = sums.means(c.Count)
	for _, m := range cohort.Leaderboard {
		if m.Domain != target.Domain && len(c.Members) < MembersShown {
			c.Members = append(c.Members, m)
		}
	}
	return c
}

// without returns counts with one company less at step. It does not change counts.
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
