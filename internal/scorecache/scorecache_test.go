package scorecache

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"companyscore/internal/redis"
	"companyscore/internal/test/stores"
	"companyscore/scoring"
)

func TestMain(m *testing.M) { stores.Main(m) }

func TestNewestIsKeptInAnyOrder(t *testing.T) {
	t.Parallel()
	client, err := redis.Open(t.Context(), stores.Redis(t).URL)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	noon := time.Date(2026, 5, 1, 12, 0, 0, 123e6, time.UTC)
	record := func(at time.Time, composite float64) scoring.Record {
		return scoring.Record{Domain: "example.com", CompanyName: "É\"", PipelineVersion: "v1", RunID: "run", ScoredAt: at,
			Composite: composite,
			Interval:  scoring.Interval{Low: 0.5, High: 7.5, Level: scoring.IntervalLevel}, ExpectedComposite: 3.5, CompletenessPct: 42.5,
			Confidence:   scoring.BandLow,
			ScalePremium: 1.5, Rating: scoring.Rating2, Buckets: scoring.BucketScores{TeamStructure: 1, MarketPosition: 2,
				MomentumTailwinds: 3, FinancialHealth: 4}}
	}
	if _, err := Get(t.Context(), client, "example.com"); !errors.Is(err, scoring.ErrNotFound) {
		t.Fatalf("nothing kept: %v", err)
	}
	for _, step := range []struct{ put, want scoring.Record }{
		{record(noon, 1), record(noon, 1)},
		{record(noon.Add(time.Hour), 2), record(noon.Add(time.Hour), 2)},
		{record(noon, 3), record(noon.Add(time.Hour), 2)},                // older
		{record(noon.Add(time.Hour), 4), record(noon.Add(time.Hour), 4)}, // repeated
	} {
		if err := Put(t.Context(), client, step.put); err != nil {
			t.Fatal(err)
		}
		got, err := Get(t.Context(), client, "example.com")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Error(diff)
		}
	}
	if err := client.Set(t.Context(), redis.Score("damaged.com"), "nonsense", 0).Err(); err != nil {
		t.Fatal(err)
	}
	records, err := GetMany(t.Context(), client, "none.com", "example.com", "damaged.com")
	if err != nil || len(records) != 1 || records["example.com"].Composite != 4 {
		t.Errorf("of many: %v, %v", records, err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(`0001700000000123{"d":"a.com","c":1}`)
	f.Add("-000000000000001{}")
	f.Fuzz(func(_ *testing.T, value string) { decode(value) })
}
