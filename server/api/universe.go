package api

import (
	"fmt"

	"companyscore/scoring"
	"companyscore/universe"
)

// decimals is the number of decimals of means, deviations and their differences: enough for any use, and without the noise of
// floating point. Composites and bucket scores have one decimal.
const decimals = 9

// NewCohort returns the comparison of a record with its cohort.
func NewCohort(rec scoring.Record, c universe.Comparison) Cohort {
	body := Cohort{
		Target: CohortTarget{
			Company: Company{
				Domain: rec.Domain, CompanyName: rec.CompanyName, Composite: rec.Composite, Rating: rec.Rating, Profile: rec.Profile,
			},
			Context: CohortContext{Sector: rec.Sector, GeoScope: rec.GeoScope},
		},
		Cohort: CohortStats{
			Count: c.Count, Mean: round(c.Mean, decimals), P50: c.P50, P90: c.P90, Stddev: round(c.Stddev, decimals),
			Min: c.Min, Max: c.Max,
			Rank: c.Rank, Percentile: round(c.Percentile, decimals),
		},
		BucketMeans: make(map[scoring.Bucket]BucketComparison),
		Members:     []Company{},
	}
	for _, b := range scoring.Buckets() {
		target, mean := rec.Buckets.Get(b), round(c.BucketMeans.Get(b), decimals)
		comparison := BucketComparison{Target: target, Cohort: mean}
		if c.Count > 0 {
			comparison.Delta = round(target-mean, decimals)
		}
		body.BucketMeans[b] = comparison
	}
	for _, m := range c.Members {
		body.Members = append(body.Members, Company{
			Domain: m.Domain, CompanyName: m.Name, Composite: m.Composite, Rating: scoring.RatingOf(m.Composite), Profile: rec.Profile,
		})
	}
	return body
}

// NewDistribution returns the distribution of all companies in the tables.
func NewDistribution(t *universe.Tables) Distribution {
	d := t.Distribution()
	return Distribution{
		PipelineVersion: t.PipelineVersion(),
		Universe: Universe{
			MinDataPct: t.MinDataPct(),
			Count:      d.Count, Mean: round(d.Mean, decimals), P50: d.P50, P90: d.P90, Stddev: round(d.Stddev, decimals),
			Min: d.Min, Max: d.Max,
			CompositeHist: bins(d.CompositeHist[:], 100/universe.CompositeBins), PremiumHist: bins(d.PremiumHist[:], 1),
			Ratings: d.Ratings, Profiles: d.Profiles,
		},
	}
}

func bins(counts []int64, width int) []Bin {
	list := make([]Bin, len(counts))
	for i, n := range counts {
		list[i] = Bin{Range: fmt.Sprintf("%d-%d", i*width, (i+1)*width), Count: n}
	}
	return list
}

// NewMovers returns the movers of a window, with or without the evidence of those that have it.
func NewMovers(window universe.Window, m universe.MoverList, evidence bool) Movers {
	return Movers{
		Window: string(window), WindowStart: Time(m.Start), WindowEnd: Time(m.End),
		Gainers: movers(m.Gainers, evidence), Decliners: movers(m.Decliners, evidence),
	}
}

func movers(list []universe.Mover, evidence bool) []Mover {
	body := make([]Mover, len(list))
	for i, m := range list {
		body[i] = Mover{
			Domain: m.Domain, CompanyName: m.Name, CompositeNow: m.Composite, CompositeThen: m.Then, Delta: m.Delta(),
			RatingNow: scoring.RatingOf(m.Composite), RatingThen: scoring.RatingOf(m.Then),
		}
		if a := m.Attribution; evidence && a != nil {
			body[i].Evidence = &MoverEvidence{a.Observation, a.Coverage, a.Premium, a.Formula, a.Defunct}
		}
	}
	return body
}
