package scoring

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"companyscore/internal/test/golden"
)

func TestNothingKnown(t *testing.T) {
	t.Parallel()
	rec := mustScore(t, Input{Domain: "nobody.example.com", Now: exampleNow})
	for _, s := range rec.Signals {
		if s.State != StateMissing || s.Score != Neutral || s.Reason != ReasonNotFound {
			t.Errorf("%+v is not neutral", s)
		}
	}
	rec.Signals = nil
	rec.Base = round1(rec.Base)
	want := Record{
		Domain:          "nobody.example.com",
		CompanyName:     "Example",
		PipelineVersion: PipelineVersion,
		ScoredAt:        exampleNow.Truncate(time.Millisecond),
		Composite:       50,
		Base:            50,
		// Any company of the reference population: the deviations of Interval over all signals.
		Interval:          rec.Interval,
		ExpectedComposite: 50,
		Rating:            Rating3,
		Buckets:           BucketScores{50, 50, 50, 50},
		Profile:           ProfileUnclassified,
		Sector:            Unknown,
		GeoScope:          Unknown,
		MomentumIndex:     50,
		Confidence:        BandDirectional,
	}
	if width := rec.Interval.High - rec.Interval.Low; width < 20 || width > 40 || rec.Interval.Level != 90 {
		t.Errorf("interval %+v", rec.Interval)
	}
	if !reflect.DeepEqual(rec, want) {
		t.Errorf("got  %+v\nwant %+v", rec, want)
	}
}

func TestScoredAtHasMilliseconds(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 2, 1, 2, 3, 4_999_999, time.FixedZone("east", 2*3600))
	got := mustScore(t, Input{Domain: "example.com", Now: now}).ScoredAt
	if want := time.Date(2026, 3, 1, 23, 2, 3, 4_000_000, time.UTC); got != want {
		t.Errorf("scored at %v, want %v", got, want)
	}
}

func TestScoreLeavesTheInputAlone(t *testing.T) {
	t.Parallel()
	for _, e := range examples {
		in, before := exampleInput(t, e), exampleInput(t, e)
		in.Warnings, before.Warnings = slices.Clone(e.input.Warnings), slices.Clone(e.input.Warnings)
		rec := mustScore(t, in)
		for i := range rec.Warnings {
			rec.Warnings[i].Source = "changed"
		}
		if !reflect.DeepEqual(in, before) {
			t.Errorf("%s: the input has changed", e.name)
		}
	}
}

// TestGoldenRecords compares whole records of the examples with golden files. -update writes
// them.
func TestGoldenRecords(t *testing.T) {
	t.Parallel()
	for _, e := range examples {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			got := describe(mustScore(t, exampleInput(t, e)))
			golden.Compare(t, "testdata/"+strings.ReplaceAll(e.name, " ", "_")+".golden", got)
		})
	}
}

// describe formats every field of a record. Unrounded numbers have six decimals, since the last
// bits differ between processors.
func describe(r Record) string {
	var b strings.Builder
	line := func(text string) { b.WriteString(strings.TrimRight(text, " ") + "\n") }
	f := func(name string, value any) { line(fmt.Sprintf("%-20s %v", name, value)) }
	f("domain", r.Domain)
	f("company name", r.CompanyName)
	f("run", r.RunID)
	f("pipeline version", r.PipelineVersion)
	f("scored at", r.ScoredAt.Format(time.RFC3339Nano))
	f("composite", r.Composite)
	f("base", fmt.Sprintf("%.6f", r.Base))
	f("scale premium", r.ScalePremium)
	f("interval", r.Interval)
	f("expected composite", r.ExpectedComposite)
	f("rating", r.Rating)
	f("buckets", r.Buckets)
	f("profile", r.Profile)
	f("sector", r.Sector)
	f("geo scope", r.GeoScope)
	f("country", r.Country)
	f("momentum index", r.MomentumIndex)
	f("completeness", r.CompletenessPct)
	f("bucket completeness", r.BucketCompleteness)
	f("confidence", r.Confidence)
	for _, w := range r.Warnings {
		f("warning", fmt.Sprint(w.Source, " ", w.Code, " ", w.At.Format(time.RFC3339Nano)))
	}
	line("")
	for _, s := range r.Signals {
		line(fmt.Sprintf("%-28s %-14s %12.6g %11.6f  %-9s %s", s.ID, s.State, s.Raw, s.Score, s.Source, s.Reason))
	}
	return b.String()
}

func BenchmarkScore(b *testing.B) {
	for _, e := range examples {
		b.Run(strings.ReplaceAll(e.name, " ", "_"), func(b *testing.B) {
			in := exampleInput(b, e)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Score(in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
