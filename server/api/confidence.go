package api

import (
	"math"

	"companyscore/scoring"
)

// Confidence is the body that shows how much of a score rests on data.
type Confidence struct {
	Mode            string       `json:"mode,omitempty"`
	Domain          string       `json:"domain"`
	CompanyName     string       `json:"company_name"`
	ScoredAt        Time         `json:"scored_at"`
	PipelineVersion string       `json:"pipeline_version"`
	Band            scoring.Band `json:"band"`
	// CompletenessPct is the weighted share of the applicable signals that rest on data, 0 to 100.
	CompletenessPct float64 `json:"data_completeness_pct"`
	// Interval is the likely range of the composite if all signals were known.
	Interval scoring.Interval `json:"interval"`
	// ExpectedComposite is the composite with the cohort's mean in the place of what is missing.
	ExpectedComposite float64 `json:"expected_composite"`
	SignalsTotal      int     `json:"signals_total"`
	SignalsObserved   int     `json:"signals_observed"`
	// SignalsNotApplicable is the length of NotApplicable.
	SignalsNotApplicable int                                 `json:"signals_not_applicable"`
	Buckets              map[scoring.Bucket]BucketConfidence `json:"buckets"`
	Missing              []MissingSignal                     `json:"missing_signals"`
	Stale                []StaleSignal                       `json:"stale_signals"`
	// NotApplicable has the ids of the signals that mean nothing for the company. They are neither
	// observed nor missing.
	NotApplicable []string      `json:"not_applicable_signals"`
	Warnings      []DataWarning `json:"data_warnings"`
}

// BucketConfidence is the same for one bucket.
type BucketConfidence struct {
	CompletenessPct      float64 `json:"data_completeness_pct"`
	SignalsTotal         int     `json:"signals_total"`
	SignalsObserved      int     `json:"signals_observed"`
	SignalsNotApplicable int     `json:"signals_not_applicable"`
}

// MissingSignal is a signal that counted as neutral, and why.
type MissingSignal struct {
	ID     string         `json:"id"`
	Name   string         `json:"name"`
	Bucket scoring.Bucket `json:"bucket"`
	// CompositeWeight is the share of the composite, before the premium, that
	// rests on the neutral score.
	CompositeWeight float64        `json:"composite_weight"`
	Reason          scoring.Reason `json:"reason"`
}

// StaleSignal is an observed signal whose observation was carried forward from an earlier run.
type StaleSignal struct {
	ID         string  `json:"id"`
	Source     string  `json:"source"`
	ObservedAt Time    `json:"observed_at"`
	AgeDays    float64 `json:"age_days"` // when the score was made
}

// DataWarning is a source that failed during the run, whose observations are stale, or that found
// the company defunct.
type DataWarning struct {
	Source string `json:"source"`
	Reason string `json:"reason"`
	At     Time   `json:"at"`
}

// NewConfidence returns the body for a record. The record must have its signals and warnings.
func NewConfidence(rec scoring.Record) Confidence {
	body := Confidence{
		Domain: rec.Domain, CompanyName: rec.CompanyName, ScoredAt: Time(rec.ScoredAt), PipelineVersion: rec.PipelineVersion,
		Band: rec.Confidence, CompletenessPct: rec.CompletenessPct, Interval: rec.Interval, ExpectedComposite: rec.ExpectedComposite,
		SignalsTotal: len(rec.Signals), Buckets: make(map[scoring.Bucket]BucketConfidence),
		Missing: []MissingSignal{}, Stale: []StaleSignal{}, NotApplicable: []string{}, Warnings: []DataWarning{},
	}
	for _, b := range scoring.Buckets() {
		body.Buckets[b] = BucketConfidence{CompletenessPct: rec.BucketCompleteness.Get(b)}
	}
	applicable := make(map[scoring.Bucket]float64) // weight of the signals that are not left out
	for _, s := range rec.Signals {
		if signal, ok := scoring.Lookup(s.ID); ok && s.State != scoring.StateNotApplicable {
			applicable[signal.Bucket] += signal.Weight
		}
	}
	for _, s := range rec.Signals {
		signal, ok := scoring.Lookup(s.ID)
		if !ok {
			signal = scoring.Signal{Name: s.ID} // of an older manifest
		}
		bucket := body.Buckets[signal.Bucket]
		bucket.SignalsTotal++
		switch {
		case s.State == scoring.StateMissing:
			missing := MissingSignal{ID: s.ID, Name: signal.Name, Bucket: signal.Bucket, Reason: s.Reason}
			if ok {
				missing.CompositeWeight = round(signal.Weight/applicable[signal.Bucket]*signal.Bucket.Weight(), 6)
			}
			body.Missing = append(body.Missing, missing)
		case s.State == scoring.StateNotApplicable:
			body.NotApplicable = append(body.NotApplicable, s.ID)
			bucket.SignalsNotApplicable++
			body.SignalsNotApplicable++
		default:
			bucket.SignalsObserved++
			body.SignalsObserved++
		}
		if rec.Stale(s) {
			age := rec.ScoredAt.Sub(s.ObservedAt).Hours() / 24
			body.Stale = append(body.Stale, StaleSignal{ID: s.ID, Source: s.Source, ObservedAt: Time(s.ObservedAt), AgeDays: round(age, 1)})
		}
		if ok {
			body.Buckets[signal.Bucket] = bucket
		}
	}
	for _, w := range rec.Warnings {
		body.Warnings = append(body.Warnings, DataWarning{Source: w.Source, Reason: w.Code, At: Time(w.At)})
	}
	return body
}

func round(x float64, decimals int) float64 {
	factor := math.Pow10(decimals)
	return math.Round(x*factor) / factor
}
