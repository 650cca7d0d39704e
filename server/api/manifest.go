package api

import "companyscore/scoring"

// Signals is the body of the manifest of signals.
type Signals struct {
	PipelineVersion string           `json:"pipeline_version"`
	Count           int              `json:"count"`
	NeutralScore    float64          `json:"neutral_score"` // score of a missing signal
	Buckets         []ManifestBucket `json:"buckets"`
	Signals         []ManifestSignal `json:"signals"`
}

// ManifestBucket is one of the four groups of signals.
type ManifestBucket struct {
	ID      scoring.Bucket `json:"id"`
	Name    string         `json:"name"`
	Weight  float64        `json:"weight"`  // share of the composite before the premium; the four sum to 1
	Signals int            `json:"signals"` // how many belong to it
}

// ManifestSignal describes one signal and its normalization.
type ManifestSignal struct {
	ID     string         `json:"id"`
	Name   string         `json:"name"`
	Bucket scoring.Bucket `json:"bucket"`
	Weight float64        `json:"weight"` // share of its bucket; those of a bucket sum to 1
	// CompositeWeight is the share of the composite before the premium.
	CompositeWeight float64           `json:"composite_weight"`
	Unit            string            `json:"unit"`
	Direction       scoring.Direction `json:"direction"` // higher, lower or band: which values are better
	Sources         []string          `json:"sources"`   // most trusted first
	Normalization   Normalization     `json:"normalization"`
}

// Normalization is the rule that maps a raw value to a score from 0 to 100.
type Normalization struct {
	Rule string  `json:"rule"`
	Low  float64 `json:"low"`  // raw values between which the score moves
	High float64 `json:"high"` // raw values between which the score moves
	// Absent is the raw value that is used if the sources report that there is none. If it
	// is null, the signal is then missing.
	Absent *float64 `json:"absent"`
}

var bucketNames = map[scoring.Bucket]string{
	scoring.TeamStructure:     "Team & Structure",
	scoring.MarketPosition:    "Market Position",
	scoring.MomentumTailwinds: "Momentum & Tailwinds",
	scoring.FinancialHealth:   "Financial Health",
}

// NewSignals returns the manifest of the scoring package.
func NewSignals() Signals {
	manifest := scoring.Manifest()
	body := Signals{PipelineVersion: scoring.PipelineVersion, Count: len(manifest), NeutralScore: scoring.Neutral}
	counts := make(map[scoring.Bucket]int)
	for _, s := range manifest {
		counts[s.Bucket]++
		signal := ManifestSignal{
			ID: s.ID, Name: s.Name, Bucket: s.Bucket, Weight: s.Weight, CompositeWeight: round(s.Weight*s.Bucket.Weight(), 6),
			Unit: s.Unit, Direction: s.Direction, Sources: s.Sources,
			Normalization: Normalization{Rule: s.Normalization, Low: s.Lo, High: s.Hi},
		}
		if raw, ok := s.Normalizer.Absent(); ok {
			signal.Normalization.Absent = &raw
		}
		body.Signals = append(body.Signals, signal)
	}
	for _, b := range scoring.Buckets() {
		body.Buckets = append(body.Buckets, ManifestBucket{ID: b, Name: bucketNames[b], Weight: b.Weight(), Signals: counts[b]})
	}
	return body
}
