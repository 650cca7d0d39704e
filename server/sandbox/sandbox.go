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
	// stale lists the sources that timed out and whose observations were carried forward.
	stale []string
	// listing is scoring.Listed or scoring.Unlisted, empty if it is unknown.
	listing string
	// days is the length of its history, drift the rise of its buckets per day in points.
	days  int
	drift float64
}

// companies holds the canned companies by domain. Composite, base, premium and rating follow
// the formulas of the scoring package. Completeness and interval follow from the sources.
var companies = map[string]company{
	"acme.test": {
		record: scoring.Record{
			CompanyName: "Acme", Composite: 67.2, Base: 64.8, ScalePremium: 2.4, Rating: scoring.Rating1,
			Buckets: scoring.BucketScores{TeamStructure: 66.0, MarketPosition: 63.0, MomentumTailwinds: 65.2, FinancialHealth: 65.5},
			Profile: scoring.ProfileGrowth,
		},
		silent: []string{"ct", "sec"}, listing: scoring.Unlisted, days: 12, drift: 0.1,
	},
	"unicorn.test": {
		record: scoring.Record{
			CompanyName: "Unicorn", Composite: 79.4, Base: 71.6, ScalePremium: 7.8, Rating: scoring.RatingElite,
			Buckets: scoring.BucketScores{TeamStructure: 74.0, MarketPosition: 75.0, MomentumTailwinds: 70.4, FinancialHealth: 65.0},
			Profile: scoring.ProfileEstablished,
		},
		silent: []string{"gdelt", "rdap"}, listing: scoring.Listed, days: 8, drift: 0.3,
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
		silent: []string{"gdelt", "hn", "jobs", "sec", "wayback"}, stale: []string{"rdap"}, listing: scoring.Unlisted, days: 6, drift: -0.1,
	},
}

// runID is the id of the run of every canned record.
const runID = "00000000-0000-7000-8000-000000000000"

// staleFor is the age of stale observations.
const staleFor = 9 * 24 * time.Hour

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
	rec.Domain, rec.PipelineVersion, rec.RunID, rec.ScoredAt = domain, scoring.PipelineVersion, runID, midnight(now)
	rec.Sector, rec.GeoScope = "software", "north_america"
	rec.MomentumIndex = rec.Buckets.MomentumTailwinds
	c.explain(&rec)
	return rec, true
}

func midnight(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }

// explain sets the signals of the record: state, source, age, and the reason of missing ones. All
// have the neutral score, since no endpoint returns scores of signals. It sets what follows from
// them: completeness, warnings, confidence and interval.
func (c company) explain(rec *scoring.Record) {
	known, applicable := make(map[scoring.Bucket]float64), make(map[scoring.Bucket]float64)
	for _, signal := range scoring.Manifest() {
		score := scoring.SignalScore{ID: signal.ID, State: scoring.StateMissing, Score: scoring.Neutral}
		switch asked := without(signal.Sources, c.silent); {
		case slices.Contains(signal.NotFor, c.listing) || slices.Contains(signal.NotFor, rec.Sector):
			score.State = scoring.StateNotApplicable
		case len(asked) == 0:
			score.Reason = scoring.ReasonNotFound
		case len(without(asked, c.failed)) == 0:
			score.Reason = scoring.ReasonSourceTimeout
		default:
			score.State, score.Source, score.ObservedAt = scoring.StateOK, without(asked, c.failed)[0], rec.ScoredAt
			if slices.Contains(c.stale, score.Source) {
				score.ObservedAt = rec.ScoredAt.Add(-staleFor)
			}
			known[signal.Bucket] += signal.Weight
		}
		if score.State != scoring.StateNotApplicable {
			applicable[signal.Bucket] += signal.Weight
		}
		rec.Signals = append(rec.Signals, score)
	}
	pct := func(b scoring.Bucket) float64 { return 100 * known[b] / applicable[b] }
	for _, b := range scoring.Buckets() {
		rec.CompletenessPct += b.Weight() * pct(b)
	}
	rec.CompletenessPct = tenths(rec.CompletenessPct)
	rec.BucketCompleteness = scoring.BucketScores{
		TeamStructure: tenths(pct(scoring.TeamStructure)), MarketPosition: tenths(pct(scoring.MarketPosition)),
		MomentumTailwinds: tenths(pct(scoring.MomentumTailwinds)), FinancialHealth: tenths(pct(scoring.FinancialHealth)),
	}
	for _, source := range slices.Concat(c.failed, c.stale) {
		rec.Warnings = append(rec.Warnings, scoring.Warning{Source: source, Code: "timeout", At: rec.ScoredAt})
	}
	for _, source := range c.stale {
		rec.Warnings = append(rec.Warnings, scoring.Warning{Source: source, Code: scoring.WarningStale, At: rec.ScoredAt.Add(-staleFor)})
	}
	rec.Confidence = scoring.BandOf(rec.CompletenessPct, rec.Warnings)
	rec.Interval, rec.ExpectedComposite = scoring.Likely(*rec, nil, nil)
}

// WithSignals returns a record with scores of its signals that add up to its buckets: all known signals of a bucket have
// one score. If none would do, since too much is missing, the missing ones have the score of the bucket as well. The
// record must be one of this package.
func WithSignals(rec scoring.Record) scoring.Record {
	known, unknown := make(map[scoring.Bucket]float64), make(map[scoring.Bucket]float64) // weights
	for i, signal := range scoring.Manifest() {
		switch s := rec.Signals[i]; {
		case s.Known():
			known[signal.Bucket] += signal.Weight
		case s.State == scoring.StateMissing:
			unknown[signal.Bucket] += signal.Weight
		}
	}
	rec.Signals = slices.Clone(rec.Signals)
	for i, signal := range scoring.Manifest() {
		s := &rec.Signals[i]
		bucket, k, u := rec.Buckets.Get(signal.Bucket), known[signal.Bucket], unknown[signal.Bucket]
		score := (bucket*(k+u) - scoring.Neutral*u) / k
		possible := score >= 0 && score <= 100
		if !possible {
			score = bucket
		}
		if s.Known() {
			s.Score, s.Raw = score, signal.Curve.Raw(score)
		} else if s.State == scoring.StateMissing && !possible {
			s.Score = score
		}
	}
	return rec
}

// without returns the elements of a list that are not in another.
func without(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(other, s) })
}
