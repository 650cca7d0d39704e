package api

import "companyscore/scoring"

// ScoreSignals is the body with all signals of one score.
type ScoreSignals struct {
	Mode            string  `json:"mode,omitempty"`
	Domain          string  `json:"domain"`
	ScoredAt        Time    `json:"scored_at"`
	PipelineVersion string  `json:"pipeline_version"`
	Composite       float64 `json:"composite_score"` // 0 to 100, premium included
	ScalePremium    float64 `json:"scale_premium"`   // 0 to 12
	// Base is the sum of the contributions, 0 to 100. It is nil for a score of another pipeline version, whose
	// weights are not known any more.
	Base    *float64      `json:"base_score,omitempty"`
	Signals []ScoreSignal `json:"signals"` // in the order of the manifest
}

// ScoreSignal is one signal of a score.
type ScoreSignal struct {
	ID     string         `json:"id"`
	Name   string         `json:"name"`
	Bucket scoring.Bucket `json:"bucket"`
	State  scoring.State  `json:"state"`
	// Value is the raw value in Unit, nil unless the state is ok.
	Value *float64 `json:"value"`
	Unit  string   `json:"unit"`
	// Score is 0 to 100, 50 if the signal is missing or not applicable.
	Score float64 `json:"score"`
	// Weight is the share in the bucket, and Contribution the points of the base. Both are nil for a score of another
	// pipeline version.
	Weight       *float64       `json:"weight,omitempty"`
	Contribution *float64       `json:"contribution,omitempty"`
	Source       string         `json:"source,omitempty"`
	Origin       string         `json:"origin,omitempty"` // of imported facts
	Reason       scoring.Reason `json:"reason,omitempty"` // why it is missing
	ObservedAt   *Time          `json:"observed_at,omitempty"`
	AgeDays      *float64       `json:"age_days,omitempty"` // when the score was made
}

// NewScoreSignals returns the body for a record with its signals.
func NewScoreSignals(rec scoring.Record) ScoreSignals {
	body := ScoreSignals{
		Domain: rec.Domain, ScoredAt: Time(rec.ScoredAt), PipelineVersion: rec.PipelineVersion, Composite: rec.Composite,
		ScalePremium: rec.ScalePremium, Signals: make([]ScoreSignal, len(rec.Signals)),
	}
	for i, s := range rec.Signals {
		signal, ok := scoring.Lookup(s.ID)
		if !ok {
			signal = scoring.Signal{Name: s.ID} // of an older manifest
		}
		part := ScoreSignal{ID: s.ID, Name: signal.Name, Bucket: signal.Bucket, State: s.State, Unit: signal.Unit, Score: s.Score,
			Source: s.Source, Origin: s.Origin, Reason: s.Reason}
		if s.State == scoring.StateOK {
			part.Value = &s.Raw
		}
		if s.Known() {
			at, age := Time(s.ObservedAt), round(rec.ScoredAt.Sub(s.ObservedAt).Hours()/24, 1)
			part.ObservedAt, part.AgeDays = &at, &age
		}
		body.Signals[i] = part
	}
	if rec.PipelineVersion != scoring.PipelineVersion {
		return body
	}
	x := scoring.Explain(rec)
	for i := range x.Signals {
		body.Signals[i].Weight, body.Signals[i].Contribution = &x.Signals[i].Weight, &x.Signals[i].Contribution
	}
	body.Base = &x.Base
	return body
}
