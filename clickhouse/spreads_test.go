package clickhouse_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"companyscore/clickhouse"
	"companyscore/scoring"
)

func TestSpreadsEqualThoseOfNewestRecords(t *testing.T) {
	t.Parallel()
	db := open(t)
	store := scores(t, db)
	now := time.Now().UTC().Truncate(time.Millisecond)
	var newest []scoring.Record
	for i := range 60 {
		for age := range 2 { // the newest first; the older record must not count
			in := scoring.Input{
				Domain: fmt.Sprintf("company-%d.com", i), RunID: "run", Now: now.Add(-time.Duration(age) * time.Hour),
				Identity: scoring.Identity{Country: "US", Industries: []string{[]string{"bank", "software"}[i%2]}},
				Observations: []scoring.Observation{
					{Signal: "employee_count", State: scoring.StateOK, Raw: float64(100*i + age), Source: "wikidata"},
					{Signal: "open_roles", State: scoring.StateAbsent, Source: "jobs"},
				},
			}
			rec, err := scoring.Score(in)
			if err != nil {
				t.Fatal(err)
			}
			if err := store.Write(t.Context(), rec); err != nil {
				t.Fatal(err)
			}
			if age == 0 {
				newest = append(newest, rec)
			}
		}
	}
	want := scoring.NewSpreads(newest)
	got, err := clickhouse.NewUniverse(db).Spreads(t.Context(), uint64(len(newest)))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Cohorts) != len(want.Cohorts) {
		t.Errorf("%d cohorts, want %d", len(got.Cohorts), len(want.Cohorts))
	}
	for key, spread := range want.Cohorts {
		if got.Cohorts[key] == nil || !near(*got.Cohorts[key], *spread) {
			t.Errorf("cohort %v differs", key)
		}
	}
	if !near(got.All, want.All) {
		t.Error("the spread of all companies differs")
	}
}

// near reports whether two spreads are equal but for the rounding of sums.
func near(a, b scoring.Spread) bool {
	same := func(x, y scoring.Moments) bool {
		return x.Count == y.Count && math.Abs(x.Sum-y.Sum) < 1e-6 && math.Abs(x.Squares-y.Squares) < 1e-4
	}
	for i := range a.Signals {
		if !same(a.Signals[i], b.Signals[i]) {
			return false
		}
	}
	return same(a.Premium, b.Premium)
}
