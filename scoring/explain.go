package scoring

import "time"

// Explanation is the computation of a record's grade from its signals. Its numbers are not
// rounded, unless their comment says so.
type Explanation struct {
	Signals []SignalPart `json:"signals"`
	Buckets []BucketPart `json:"buckets"`
	// Base is the sum of the buckets' contributions.
	Base    float64     `json:"base"`
	Premium PremiumPath `json:"premium"`
	// Defunct is true if a source found the company dissolved, dead or its domain parked. The
	// momentum bucket and the premium are then 0, and the composite is at most DefunctMax.
	Defunct bool `json:"defunct"`
	// Composite is base plus premium, clamped to 0 to 100, rounded to one decimal.
	Composite float64 `json:"composite"`
	Rating    Rating  `json:"rating"`
	// RatingFrom is the lowest composite of the grade.
	RatingFrom float64 `json:"rating_from"`
}

// SignalPart is the contribution of one signal to the base.
type SignalPart struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Bucket Bucket `json:"bucket"`
	State  State  `json:"state"`
	// Raw is nil unless a value was observed.
	Raw    *float64 `json:"raw"`
	Unit   string   `json:"unit"`
	Score  float64  `json:"score"`
	Source string   `json:"source,omitempty"`
	// Origin is the origin of imported facts, empty for another source.
	Origin string `json:"origin,omitempty"`
	Reason Reason `json:"reason,omitempty"`
	// ObservedAt is nil if the signal is missing or not applicable.
	ObservedAt *time.Time `json:"observed_at"`
	// Weight is the signal's share in its bucket, 0 if it is not applicable.
	Weight float64 `json:"weight"`
	// Contribution is score times weight times the weight of the bucket; 0 in momentum of a defunct company.
	Contribution float64 `json:"contribution"`
}

// BucketPart is the contribution of one bucket to the base.
type BucketPart struct {
	Bucket Bucket  `json:"bucket"`
	Score  float64 `json:"score"`
	Weight float64 `json:"weight"`
	// Contribution is score times weight.
	Contribution    float64 `json:"contribution"`
	CompletenessPct float64 `json:"completeness_pct"` // one decimal
}

// PremiumPath is the computation of the premium for scale.
type PremiumPath struct {
	Profile Profile       `json:"profile"`
	Parts   []PremiumPart `json:"parts"`
	// PriorWeight is the weight of the prior, whose share is 0.
	PriorWeight float64 `json:"prior_weight"`
	// Scale is the weighted mean of the known parts and of the prior, 0 to 1.
	Scale float64 `json:"scale"`
	// Points is 12 times scale, rounded to one decimal; 0 for a defunct company.
	Points float64 `json:"points"`
}

// PremiumPart is one measure of scale.
type PremiumPart struct {
	Signal string  `json:"signal"`
	Known  bool    `json:"known"`
	Share  float64 `json:"share"` // 0 to 1; 0 if unknown
	Weight float64 `json:"weight"`
}

// Explain recomputes a record of the current pipeline version from its signals. Signals must be
// complete and in manifest order, as in records of Score and of stores.
func Explain(rec Record) Explanation {
	var x Explanation
	if len(rec.Signals) != len(manifest) {
		return x
	}
	signals := signalScores(rec.Signals)
	weights, shares := signals.bucketWeights(), Shares(rec)
	for i := range manifest {
		s, got := &manifest[i], signals[i]
		weight := signals.share(i, weights)
		part := SignalPart{
			ID: s.ID, Name: s.Name, Bucket: s.Bucket, State: got.State, Unit: s.Unit, Score: got.Score, Source: got.Source,
			Origin: got.Origin,
			Reason: got.Reason,
			Weight: weight, Contribution: got.Score * shares[i],
		}
		if got.Known() {
			part.ObservedAt = &got.ObservedAt
		}
		if got.State == StateOK {
			part.Raw = &got.Raw
		}
		x.Signals = append(x.Signals, part)
	}
	scores, _ := signals.buckets()
	if rec.Defunct() {
		scores.MomentumTailwinds = 0
	}
	for _, b := range Buckets() {
		x.Buckets = append(x.Buckets, BucketPart{
			Bucket: b, Score: scores.Get(b), Weight: b.Weight(), Contribution: scores.Get(b) * b.Weight(),
			CompletenessPct: rec.BucketCompleteness.Get(b),
		})
	}
	x.Base = scores.weighted()
	x.Premium = premiumPath(rec.Profile, signals)
	x.Defunct = rec.Defunct()
	if x.Defunct {
		x.Premium.Points = 0
	}
	x.Composite = round1(clamp(x.Base+x.Premium.Points, 0, 100))
	if x.Defunct {
		x.Composite = min(x.Composite, DefunctMax)
	}
	x.Rating = RatingOf(x.Composite)
	x.RatingFrom = RatingFrom(x.Rating)
	return x
}

func premiumPath(p Profile, s signalScores) PremiumPath {
	path := PremiumPath{Profile: p, PriorWeight: priorWeight, Scale: scaleOf(s)}
	path.Points = round1(premium(path.Scale))
	for _, m := range measures {
		part := PremiumPart{Signal: manifest[m.signal].ID, Weight: m.weightBeside(s[revenue].State == StateOK)}
		if s[m.signal].State == StateOK {
			part.Known, part.Share = true, m.share(s[m.signal].Raw)
		}
		path.Parts = append(path.Parts, part)
	}
	listing := PremiumPart{Signal: manifest[publicListing].ID, Weight: listingWeight}
	if s.reached(publicListing, 0.5) > 0 {
		listing.Known, listing.Share = true, listingScale
	}
	path.Parts = append(path.Parts, listing)
	return path
}
