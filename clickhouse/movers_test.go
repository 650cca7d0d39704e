package clickhouse_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"companyscore/clickhouse"
	"companyscore/scoring"
	"companyscore/universe"
)

// TestMoversSplitTheirDeltas scores two companies before and in each window. One has a better value,
// the other a further one.
func TestMoversSplitTheirDeltas(t *testing.T) {
	t.Parallel()
	db := open(t)
	s := scores(t, db)
	put := func(domain string, age time.Duration, values map[string]float64) {
		t.Helper()
		in := scoring.Input{Domain: domain, Now: noon.Add(-age)}
		for signal, raw := range values {
			in.Observations = append(in.Observations, scoring.Observation{Signal: signal, State: scoring.StateOK, Raw: raw,
				Source: "facts"})
		}
		rec, err := scoring.Score(in)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Write(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	const day = 24 * time.Hour
	for _, age := range []time.Duration{100 * day, 7*day + time.Millisecond} {
		put("better.com", age, map[string]float64{"open_roles": 1})
		put("known.com", age, map[string]float64{"open_roles": 1})
	}
	put("better.com", 7*day, map[string]float64{"open_roles": 300}) // on the first instant of the window
	put("known.com", time.Hour, map[string]float64{"open_roles": 1, "hn_mentions_365d": 4000})
	movers, err := clickhouse.NewUniverse(db).Movers(t.Context(), noon, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range universe.Windows {
		list := movers.Lists[w].Gainers
		if len(list) != 2 {
			t.Fatalf("%s: %+v, want two gainers", w, list)
		}
		for _, m := range list {
			want := scoring.Attribution{Delta: m.Delta(), Observation: m.Delta()}
			if m.Domain == "known.com" {
				want = scoring.Attribution{Delta: m.Delta(), Coverage: m.Delta()}
			}
			if diff := cmp.Diff(&want, m.Attribution); diff != "" {
				t.Errorf("%s of %s: %s", w, m.Domain, diff)
			}
		}
	}
}
