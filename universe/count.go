package universe

import (
	"cmp"
	"slices"
	"time"

	"companyscore/scoring"
)

// Count returns the snapshot of some records, one for each company, without
// movers. It is for universes that fit into memory; large ones are counted where
// they are stored.
func Count(records []scoring.Record, at time.Time) Snapshot {
	s := Snapshot{PipelineVersion: scoring.PipelineVersion, Cut: at}
	groups := make(map[GroupKey]*Group)
	steps := make(map[GroupKey]map[int]int64)
	for _, rec := range records {
		key := GroupKey{rec.Sector, rec.GeoScope, rec.Profile}
		g := groups[key]
		if g == nil {
			g = &Group{GroupKey: key}
			groups[key], steps[key] = g, make(map[int]int64)
		}
		steps[key][step(rec.Composite)]++
		g.BucketSums = g.BucketSums.plus(rec.Buckets)
		g.Top = append(g.Top, Member{rec.Domain, rec.CompanyName, rec.Composite, rec.Rating})
		s.PremiumHist[min(int(rec.ScalePremium), PremiumBins-1)]++
	}
	for key, g := range groups {
		for step, n := range steps[key] {
			g.Steps = append(g.Steps, StepCount{step, n})
		}
		slices.SortFunc(g.Steps, func(a, b StepCount) int { return a.Step - b.Step })
		slices.SortFunc(g.Top, func(a, b Member) int {
			return cmp.Or(cmp.Compare(b.Composite, a.Composite), cmp.Compare(a.Domain, b.Domain))
		})
		g.Top = g.Top[:min(len(g.Top), MembersKept)]
		s.Groups = append(s.Groups, *g)
	}
	slices.SortFunc(s.Groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(a.Sector, b.Sector), cmp.Compare(a.GeoScope, b.GeoScope), cmp.Compare(a.Profile, b.Profile))
	})
	return s
}

func (s BucketSums) plus(b scoring.BucketScores) BucketSums {
	s.TeamStructure += hundredths(b.TeamStructure)
	s.MarketPosition += hundredths(b.MarketPosition)
	s.MomentumTailwinds += hundredths(b.MomentumTailwinds)
	s.FinancialHealth += hundredths(b.FinancialHealth)
	return s
}
