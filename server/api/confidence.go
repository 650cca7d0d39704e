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
	// CompletenessPct is the weighted share of the signals that rest on data, 0 to 100.
	CompletenessPct float64                             `json:"data_completeness_pct"`
	SignalsTotal    int                                 `json:"signals_total"`
	SignalsObserved int                                 `json:"signals_observed"`
	Buckets         map[scoring.Bucket]BucketConfidence `json:"buckets"`
	Missing         []MissingSignal                     `json:"missing_signals"`
	Warnings        []DataWarning                       `json:"data_warnings"`
}

// BucketConfidence is the same for one bucket.
type BucketConfidence struct {
	CompletenessPct float64 `json:"data_completeness_pct"`
	SignalsTotal    int     `json:"signals_total"`
	SignalsObserved int     `json:"signals_observed"`
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

// DataWarning is a source that failed during the run.
type DataWarning struct {
	Source string `json:"source"`
	Reason string `json:"reason"`
	At     Time   `json:"at"`
}

// NewConfidence returns the body for a record. The record must have its signals and warnings.
func NewConfidence(rec scoring.Record) Confidence {
	body := Confidence{
		Domain: rec.Domain, CompanyName: rec.CompanyName, ScoredAt: Time(rec.ScoredAt), PipelineVersion: rec.PipelineVersion,
		Band: rec.Confidence, CompletenessPct: rec.CompletenessPct, SignalsTotal: len(rec.Signals),
		Buckets: make(map[scoring.Bucket]BucketConfidence), Missing: []MissingSignal{}, Warnings: []DataWarning{},
	}
	for _, b := range scoring.Buckets() {
		body.Buckets[b] = BucketConfidence{CompletenessPct: rec.BucketCompleteness.Get(b)}
	}
	for _, s := range rec.Signals {
		signal, ok := scoring.Lookup(s.ID)
		if !ok {
			signal = scoring.Signal{Name: s.ID} // of an older manifest
		}
		bucket := body.Buckets[signal.Bucket]
		bucket.SignalsTotal++
		if s.State == scoring.StateMissing {
			body.Missing = append(body.Missing, MissingSignal{
				ID: s.ID, Name: signal.Name, Bucket: signal.Bucket,
				CompositeWeight: round(signal.Weight*signal.Bucket.Weight(), 6), Reason: s.Reason,
			})
		} else {
			bucket.SignalsObserved++
			body.SignalsObserved++
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
