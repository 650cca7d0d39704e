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
	Direction       scoring.Direction `json:"direction"` // higher or lower: which values are better
	Sources         []string          `json:"sources"`   // most trusted first
	Normalization   Normalization     `json:"normalization"`
	// MaxAgeDays is the age until which an observation is carried forward while its source has no news.
	MaxAgeDays int `json:"max_age_days"`
	// NotApplicableTo has sectors, or listed or unlisted, for which the signal is left out.
	NotApplicableTo []string `json:"not_applicable_to"`
}

// Normalization is the rule that maps a raw value to a score from 0 to 100.
type Normalization struct {
	Rule string `json:"rule"`
	// P10, P50 and P90 are the raw values that score 20, 50 and 80: percentiles of the reference
	// population. For a yes or no they are 0 or 1.
	P10 float64 `json:"p10"`
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	// Absent is the score if the sources report that there is none. If it is null, the signal is then
	// missing.
	Absent *float64 `json:"absent_score"`
	// Population is the reference population, Basis where its percentiles come from.
	Population string `json:"population"`
	Basis      string `json:"basis"`
}

var bucketNames = map[scoring.Bucket]string{
	scoring.TeamStructure:     "Team & Structure",
	scoring.MarketPosition:    "Market Position",
	scoring.MomentumTailwinds: "Momentum & Tailwinds",
	scoring.FinancialHealth:   "Financial Health",
}

// BucketName returns the display name of a bucket.
func BucketName(b scoring.Bucket) string { return bucketNames[b] }

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
			Normalization: Normalization{
				Rule: s.Normalization, P10: round(s.Curve.Raw(20), 6), P50: round(s.Curve.Raw(50), 6), P90: round(s.Curve.Raw(80), 6),
				Population: s.Population, Basis: s.Basis,
			},
			MaxAgeDays: int(s.MaxAge.Hours() / 24), NotApplicableTo: append([]string{}, s.NotFor...),
		}
		if score, ok := s.Curve.Absent(); ok {
			signal.Normalization.Absent = &score
		}
		body.Signals = append(body.Signals, signal)
	}
	for _, b := range scoring.Buckets() {
		body.Buckets = append(body.Buckets, ManifestBucket{ID: b, Name: BucketName(b), Weight: b.Weight(), Signals: counts[b]})
	}
	return body
}
