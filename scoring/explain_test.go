package scoring

import (
	"math"
	"testing"
)

// TestExplanationAddsUpToTheRecord compares each step of an explanation with the record.
func TestExplanationAddsUpToTheRecord(t *testing.T) {
	t.Parallel()
	for _, e := range examples {
		rec := mustScore(t, exampleInput(t, e))
		x := Explain(rec)
		near := func(what string, got, want float64) {
			t.Helper()
			if math.Abs(got-want) > 1e-9 {
				t.Errorf("%s: %s = %v, want %v", e.name, what, got, want)
			}
		}
		var base, fromBuckets float64
		for _, s := range x.Signals {
			base += s.Contribution
		}
		for _, b := range x.Buckets {
			fromBuckets += b.Contribution
			near(string(b.Bucket), round1(b.Score), rec.Buckets.Get(b.Bucket))
		}
		near("sum of the signals", base, rec.Base)
		near("sum of the buckets", fromBuckets, rec.Base)
		near("base", x.Base, rec.Base)
		scale, weights := 0.0, x.Premium.PriorWeight
		for _, p := range x.Premium.Parts {
			if p.Known {
				scale += p.Share * p.Weight
				weights += p.Weight
			}
		}
		near("scale", x.Premium.Scale, scale/weights)
		near("premium", round1(12*x.Premium.Scale), rec.ScalePremium)
		near("premium points", x.Premium.Points, rec.ScalePremium)
		near("composite", x.Composite, rec.Composite)
		if x.Rating != rec.Rating || x.RatingFrom > rec.Composite {
			t.Errorf("%s: rating %s from %v, want %s of %v", e.name, x.Rating, x.RatingFrom, rec.Rating, rec.Composite)
		}
	}
	if x := Explain(Record{}); len(x.Signals) != 0 || x.Base != 0 {
		t.Errorf("a record without signals explains %+v", x)
	}
}
