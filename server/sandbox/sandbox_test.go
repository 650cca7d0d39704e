package sandbox

import (
	"math"
	"slices"
	"testing"
	"time"

	"companyscore/scoring"
)

func TestCannedRecordsObeyTheFormulas(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	if !slices.IsSorted(Domains) || len(Domains) != len(records) {
		t.Errorf("Domains = %v for %d records", Domains, len(records))
	}
	for _, domain := range Domains {
		rec, ok := Score(domain, now)
		if !ok {
			t.Fatalf("Score(%s) is not there", domain)
		}
		var base float64
		for _, b := range scoring.Buckets() {
			base += b.Weight() * rec.Buckets.Get(b)
		}
		if math.Abs(base-rec.Base) > 0.051 || math.Abs(rec.Base+rec.ScalePremium-rec.Composite) > 1e-9 {
			t.Errorf("%s: base %v (from buckets %v), premium %v, composite %v", domain, rec.Base, base, rec.ScalePremium, rec.Composite)
		}
		if got := scoring.RatingOf(rec.Composite); got != rec.Rating {
			t.Errorf("%s: rating %s, want %s", domain, rec.Rating, got)
		}
		limit := map[scoring.Profile]float64{scoring.ProfileEstablished: 12, scoring.ProfileGrowth: 6}[rec.Profile]
		if rec.ScalePremium > limit {
			t.Errorf("%s: premium %v beyond %v of a %s profile", domain, rec.ScalePremium, limit, rec.Profile)
		}
		if rec.ScoredAt.After(now) || now.Sub(rec.ScoredAt) > 24*time.Hour {
			t.Errorf("%s: scored at %v, seen from %v", domain, rec.ScoredAt, now)
		}
	}
	if _, ok := Score("example.com", now); ok {
		t.Error("the sandbox knows a real domain")
	}
}
