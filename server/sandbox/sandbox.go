// Package sandbox answers test keys with canned data. It knows four invented
// companies, reaches no store and no source, and answers the same every time
// but for the dates.
package sandbox

import (
	"slices"
	"time"

	"companyscore/scoring"
)

// Domains are the canned companies, in alphabetical order.
var Domains = []string{"acme.test", "cohort.test", "struggling.test", "unicorn.test"}

// company is one canned company.
type company struct {
	record scoring.Record
	// silent are the sources that knew nothing of it, failed those that did not answer.
	silent, failed []string
	// days is how long its history is, drift by how much its buckets rose each day.
	days  int
	drift float64
}

// Composite, base, premium, rating and band of a canned record agree by the formulas of
// the scoring package. How much it rests on follows from which sources are silent or failed.
var companies = map[string]company{
	"acme.test": {
		record: scoring.Record{
			CompanyName: "Acme", Composite: 67.2, Base: 64.8, ScalePremium: 2.4, Rating: scoring.Rating1,
			Buckets: scoring.BucketScores{TeamStructure: 66.0, MarketPosition: 63.0, MomentumTailwinds: 65.2, FinancialHealth: 65.5},
			Profile: scoring.ProfileGrowth,
		},
		silent: []string{"ct", "sec"}, days: 12, drift: 0.1,
	},
	"unicorn.test": {
		record: scoring.Record{
			CompanyName: "Unicorn", Composite: 79.4, Base: 71.6, ScalePremium: 7.8, Rating: scoring.RatingElite,
			Buckets: scoring.BucketScores{TeamStructure: 74.0, MarketPosition: 75.0, MomentumTailwinds: 70.4, FinancialHealth: 65.0},
			Profile: scoring.ProfileEstablished,
		},
		silent: []string{"gdelt", "rdap"}, days: 8, drift: 0.3,
	},
	"struggling.test": {
		record: scoring.Record{
			CompanyName: "Struggling", Composite: 32.1, Base: 32.1, Rating: scoring.Rating4,
			Buckets: scoring.BucketScores{TeamStructure: 34.0, MarketPosition: 29.0, MomentumTailwinds: 27.6, FinancialHealth: 40.0},
			Profile: scoring.ProfileGrowth,
		},
		silent: []string{"github", "gleif", "jobs", "sec"}, failed: []string{"dns", "web", "wikidata"}, days: 4, drift: -0.4,
	},
	"cohort.test": {
		record: scoring.Record{
			CompanyName: "Cohort", Composite: 45.0, Base: 44.4, ScalePremium: 0.6, Rating: scoring.Rating3,
			Buckets: scoring.BucketScores{TeamStructure: 46.0, MarketPosition: 44.0, MomentumTailwinds: 42.8, FinancialHealth: 45.0},
			Profile: scoring.ProfileGrowth,
		},
		silent: []string{"gdelt", "hn", "jobs", "sec", "wayback"}, days: 6, drift: -0.1,
	},
}

// Has reports whether a domain is one of the canned companies.
func Has(domain string) bool { _, ok := companies[domain]; return ok }

// Score returns the record of a canned company as scored on the day of now, at
// midnight UTC, and false for any other domain.
func Score(domain string, now time.Time) (scoring.Record, bool) {
	c, ok := companies[domain]
	if !ok {
		return scoring.Record{}, false
	}
	rec := c.record
	rec.Domain, rec.PipelineVersion, rec.ScoredAt = domain, scoring.PipelineVersion, midnight(now)
	rec.Sector, rec.GeoScope = "software", "north_america"
	rec.MomentumIndex = rec.Buckets.MomentumTailwinds
	c.explain(&rec)
	return rec, true
}

func midnight(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }

// explain fills in what the record rests on: which signals are known, by whom, and
// why others are not. Canned signals have no scores of their own; nothing shows them.
func (c company) explain(rec *scoring.Record) {
	known := make(map[scoring.Bucket]float64)
	for _, signal := range scoring.Manifest() {
		score := scoring.SignalScore{ID: signal.ID, State: scoring.StateOK, Score: scoring.Neutral}
		switch asked := without(signal.Sources, c.silent); {
		case len(asked) == 0:
			score.State, score.Reason = scoring.StateMissing, scoring.ReasonNotFound
		case len(without(asked, c.failed)) == 0:
			score.State, score.Reason = scoring.StateMissing, scoring.ReasonSourceTimeout
		default:
			score.Source = without(asked, c.failed)[0]
			known[signal.Bucket] += signal.Weight
		}
		rec.Signals = append(rec.Signals, score)
	}
	for _, b := range scoring.Buckets() {
		rec.CompletenessPct += 100 * b.Weight() * known[b]
	}
	rec.CompletenessPct = tenths(rec.CompletenessPct)
	rec.BucketCompleteness = scoring.BucketScores{
		TeamStructure: tenths(100 * known[scoring.TeamStructure]), MarketPosition: tenths(100 * known[scoring.MarketPosition]),
		MomentumTailwinds: tenths(100 * known[scoring.MomentumTailwinds]), FinancialHealth: tenths(100 * known[scoring.FinancialHealth]),
	}
	for _, source := range c.failed {
		rec.Warnings = append(rec.Warnings, scoring.Warning{Source: source, Code: "timeout", At: rec.ScoredAt})
	}
	rec.Confidence = scoring.BandOf(rec.CompletenessPct, rec.Warnings)
}

// without returns what of a list is not in another.
func without(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(other, s) })
}
