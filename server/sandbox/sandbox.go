// Package sandbox answers test keys with canned data. It knows four invented
// companies, reaches no store and no source, and answers the same every time
// but for the dates.
package sandbox

import (
	"time"

	"companyscore/scoring"
)

// Domains are the canned companies, in alphabetical order.
var Domains = []string{"acme.test", "cohort.test", "struggling.test", "unicorn.test"}

// The canned records obey the formulas of the scoring package.
var records = map[string]scoring.Record{
	"acme.test": {
		CompanyName: "Acme", Composite: 67.2, Base: 64.8, ScalePremium: 2.4, Rating: scoring.Rating1,
		Buckets: scoring.BucketScores{TeamStructure: 66.0, MarketPosition: 63.0, MomentumTailwinds: 65.2, FinancialHealth: 65.5},
		Profile: scoring.ProfileGrowth, MomentumIndex: 65.2, CompletenessPct: 88.4, Confidence: scoring.BandHigh,
	},
	"unicorn.test": {
		CompanyName: "Unicorn", Composite: 79.4, Base: 71.6, ScalePremium: 7.8, Rating: scoring.RatingElite,
		Buckets: scoring.BucketScores{TeamStructure: 74.0, MarketPosition: 75.0, MomentumTailwinds: 70.4, FinancialHealth: 65.0},
		Profile: scoring.ProfileEstablished, MomentumIndex: 70.4, CompletenessPct: 93.1, Confidence: scoring.BandHigh,
	},
	"struggling.test": {
		CompanyName: "Struggling", Composite: 32.1, Base: 32.1, Rating: scoring.Rating4,
		Buckets: scoring.BucketScores{TeamStructure: 34.0, MarketPosition: 29.0, MomentumTailwinds: 27.6, FinancialHealth: 40.0},
		Profile: scoring.ProfileUnclassified, MomentumIndex: 27.6, CompletenessPct: 34.6, Confidence: scoring.BandDirectional,
	},
	"cohort.test": {
		CompanyName: "Cohort", Composite: 45.0, Base: 44.4, ScalePremium: 0.6, Rating: scoring.Rating3,
		Buckets: scoring.BucketScores{TeamStructure: 46.0, MarketPosition: 44.0, MomentumTailwinds: 42.8, FinancialHealth: 45.0},
		Profile: scoring.ProfileGrowth, MomentumIndex: 42.8, CompletenessPct: 71.0, Confidence: scoring.BandMedium,
	},
}

// Score returns the record of a canned company as scored on the day of now, at
// midnight UTC, and false for any other domain.
func Score(domain string, now time.Time) (scoring.Record, bool) {
	rec, ok := records[domain]
	if !ok {
		return scoring.Record{}, false
	}
	rec.Domain = domain
	rec.PipelineVersion = scoring.PipelineVersion
	rec.ScoredAt = now.UTC().Truncate(24 * time.Hour)
	rec.Sector, rec.GeoScope = "software", "north_america"
	return rec, true
}
