// Package sandbox returns canned data for test keys. It has four made-up companies, uses no
// store and no source, and is deterministic except for dates.
package sandbox

import (
	"slices"
	"time"

	"companyscore/scoring"
)

// Domains lists the domains of the canned companies, in alphabetical order.
var Domains = []string{"acme.test", "cohort.test", "struggling.test", "unicorn.test"}

// company is one canned company.
type company struct {
	record scoring.Record
	// silent lists the sources without data about the company, failed those that timed out.
	silent, failed []string
	// days is the length of its history, drift the rise of its buckets per day in points.
	days  int
	drift float64
}

// companies holds the canned companies by domain. Composite, base, premium and rating follow
// the formulas of the scoring package. Completeness follows from the silent and failed
// sources.
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

// Score returns the record of a canned company, scored at midnight UTC of the day of now. It
// returns false for any other domain.
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

// explain sets the signals of the record: state, source, and the reason of missing ones. All
// have the neutral score, since no endpoint returns scores of signals.
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

// without returns the elements of a list that are not in another.
func without(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(other, s) })
}
