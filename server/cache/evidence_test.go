package cache

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"companyscore/internal/scorecache"
	"companyscore/scoring"
	"companyscore/server/api"
)

// evident returns a record with evidence.
func evident(run string, band scoring.Band, completeness, low, high float64) scoring.Record {
	return scoring.Record{
		Domain: "example.com", PipelineVersion: "v1", ScoredAt: noon, Composite: 50, RunID: run, Confidence: band,
		CompletenessPct: completeness,
		Interval:        scoring.Interval{Low: low, High: high, Level: scoring.IntervalLevel},
	}
}

func TestEvidenceIsPackedWithoutLoss(t *testing.T) {
	t.Parallel()
	for _, rec := range []scoring.Record{
		evident("01a1fc94-05cf-764e-800e-9c3462621484", scoring.BandHigh, 100, 0, 100), evident("", scoring.BandMedium, 0, 65.7, 65.7),
		evident("run", scoring.BandLow, 41.7, 0.1, 99.9), evident("run", scoring.BandDirectional, 8.1, 29.4, 70.6),
	} {
		e := NewEntry(rec)
		if diff := cmp.Diff(api.NewEvidence(rec), e.Evidence()); diff != "" {
			t.Error(diff)
		}
	}
	for tenth := range 1001 {
		x := float64(tenth) / 10
		if got := NewEntry(evident("run", scoring.BandLow, x, x, x)).Evidence(); got.CompletenessPct != x || got.Interval.Low != x ||
			got.Interval.High != x {
			t.Errorf("%v became %+v", x, got)
		}
	}
	if got := (Entry{}).Evidence(); got != (api.Evidence{}) {
		t.Errorf("a company without a score has %+v", got)
	}
	if got := NewEntry(evident(strings.Repeat("x", 300), scoring.BandLow, 1, 2, 3)).Evidence(); len(got.RunID) < 200 ||
		got.Interval.High != 3 {
		t.Errorf("a long id became %+v", got)
	}
}

func TestEveryTierReturnsTheEvidence(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rec := evident("run", scoring.BandMedium, 71.3, 58, 74.1)
	w.scored["example.com"] = rec
	for _, want := range []Level{ClickHouse, Memory, Redis} {
		if want == Redis {
			w.Drop("example.com")
		}
		e, level, err := w.Get(t.Context(), "example.com")
		if err != nil || level != want {
			t.Fatalf("answered by tier %d, %v, want %d", level, err, want)
		}
		if diff := cmp.Diff(api.NewEvidence(rec), e.Evidence()); diff != "" {
			t.Errorf("tier %d: %s", level, diff)
		}
	}
	newer := rec
	newer.ScoredAt, newer.RunID, newer.Interval.High = noon.Add(time.Hour), "newer", 75
	if err := scorecache.Put(t.Context(), w.redis, newer); err != nil {
		t.Fatal(err)
	}
	w.Drop("example.com")
	entries, _, err := w.Many(t.Context(), []string{"example.com"})
	if err != nil || entries["example.com"].Evidence().RunID != "newer" || entries["example.com"].Evidence().Interval.High != 75 {
		t.Errorf("of many: %+v, %v", entries["example.com"].Evidence(), err)
	}
}
