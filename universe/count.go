package universe

import (
	"cmp"
	"slices"
	"time"

	"companyscore/scoring"
)

// Count counts records in memory. The caller passes one record per company. The count
// job counts in the store instead.
func Count(records []scoring.Record, at time.Time) Counts {
	s := Counts{PipelineVersion: scoring.PipelineVersion, At: at, Settled: at}
	cohorts := make(map[CohortKey]*Cohort)
	steps := make(map[CohortKey]map[int]int64)
	for _, rec := range records {
		key := scoring.KeyOf(rec)
		c := cohorts[key]
		if c == nil {
			c = &Cohort{CohortKey: key}
			cohorts[key], steps[key] = c, make(map[int]int64)
		}
		steps[key][step(rec.Composite)]++
		c.BucketSums = c.BucketSums.plus(rec.Buckets)
		if key.Peers() {
			c.Leaderboard = append(c.Leaderboard, Company{rec.Domain, rec.CompanyName, rec.Composite, rec.CompletenessPct})
		}
		s.PremiumHist[min(int(rec.ScalePremium), PremiumBins-1)]++
	}
	for key, c := range cohorts {
		for step, n := range steps[key] {
			c.Steps = append(c.Steps, StepCount{step, n})
		}
		slices.SortFunc(c.Steps, func(a, b StepCount) int { return a.Step - b.Step })
		slices.SortFunc(c.Leaderboard, func(a, b Company) int {
			return cmp.Or(cmp.Compare(b.Composite, a.Composite), cmp.Compare(a.Domain, b.Domain))
		})
		c.Leaderboard = c.Leaderboard[:min(len(c.Leaderboard), LeaderboardMax)]
		s.Cohorts = append(s.Cohorts, *c)
	}
	slices.SortFunc(s.Cohorts, func(a, b Cohort) int { return compareKeys(a.CohortKey, b.CohortKey) })
	return s
}

func compareKeys(a, b CohortKey) int {
	return cmp.Or(cmp.Compare(a.Sector, b.Sector), cmp.Compare(a.GeoScope, b.GeoScope), cmp.Compare(a.Profile, b.Profile))
}

func (s BucketSums) plus(b scoring.BucketScores) BucketSums {
	s.TeamStructure += hundredths(b.TeamStructure)
	s.MarketPosition += hundredths(b.MarketPosition)
	s.MomentumTailwinds += hundredths(b.MomentumTailwinds)
	s.FinancialHealth += hundredths(b.FinancialHealth)
	return s
}
