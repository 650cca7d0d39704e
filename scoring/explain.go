package scoring

import "math"

// Explanation is the computation of a record's grade from its signals. Its numbers are not
// rounded, unless their comment says so.
type Explanation struct {
	Signals []SignalPart `json:"signals"`
	Buckets []BucketPart `json:"buckets"`
	// Base is the sum of the buckets' contributions.
	Base    float64     `json:"base"`
	Premium PremiumPath `json:"premium"`
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
	// Raw is nil if the signal is missing.
	Raw    *float64 `json:"raw"`
	Unit   string   `json:"unit"`
	Score  float64  `json:"score"`
	Source string   `json:"source,omitempty"`
	Reason Reason   `json:"reason,omitempty"`
	// Weight is the signal's share in its bucket.
	Weight float64 `json:"weight"`
	// Contribution is score times weight times the weight of the bucket.
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
	// Scale is the weighted mean of the known parts, 0 to 1.
	Scale float64 `json:"scale"`
	// Coverage is the weight of the known parts divided by fullCoverage, at most 1.
	Coverage float64 `json:"coverage"`
	// Cap is the largest premium of the profile.
	Cap float64 `json:"cap"`
	// Points is cap times scale times coverage, rounded to one decimal.
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
	var sums BucketScores
	signals := signalScores(rec.Signals)
	for i := range min(len(manifest), len(signals)) {
		s, got := &manifest[i], signals[i]
		part := SignalPart{
			ID: s.ID, Name: s.Name, Bucket: s.Bucket, State: got.State, Unit: s.Unit, Score: got.Score, Source: got.Source, Reason: got.Reason,
			Weight: s.Weight, Contribution: got.Score * s.Weight * s.Bucket.Weight(),
		}
		if raw, ok := signals.known(i); ok {
			part.Raw = &raw
		}
		*sums.field(s.Bucket) += s.Weight * got.Score
		x.Signals = append(x.Signals, part)
	}
	for _, b := range Buckets() {
		x.Buckets = append(x.Buckets, BucketPart{
			Bucket: b, Score: sums.Get(b), Weight: b.Weight(), Contribution: sums.Get(b) * b.Weight(), CompletenessPct: rec.BucketCompleteness.Get(b),
		})
	}
	x.Base = sums.weighted()
	if len(signals) == len(manifest) {
		x.Premium = premiumPath(rec.Profile, signals)
	}
	x.Composite = round1(clamp(x.Base+x.Premium.Points, 0, 100))
	x.Rating = RatingOf(x.Composite)
	for _, cut := range ratingCuts {
		if cut.rating == x.Rating {
			x.RatingFrom = cut.min
		}
	}
	return x
}

func premiumPath(p Profile, s signalScores) PremiumPath {
	path := PremiumPath{Profile: p, Cap: premiumCap(p), Points: scalePremium(p, s)}
	for _, part := range premiumParts {
		out := PremiumPart{Signal: manifest[part.signal].ID, Weight: part.weight}
		if raw, ok := s.known(part.signal); ok {
			out.Known, out.Share = true, clamp(math.Log10(max(raw, 1)/part.from)/math.Log10(part.factor), 0, 1)
		}
		path.Parts = append(path.Parts, out)
	}
	listing := PremiumPart{Signal: manifest[publicListing].ID, Weight: listingWeight}
	if _, ok := s.known(publicListing); ok {
		listing.Known, listing.Share = true, float64(s.reached(publicListing, 0.5))
	}
	path.Parts = append(path.Parts, listing)
	scale, coverage := scaleOf(s)
	path.Scale, path.Coverage = scale, min(1, coverage/fullCoverage)
	return path
}
