package clickhouse_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
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
			in.Observations = append(in.Observations, scoring.Observation{Signal: signal, State: scoring.StateOK, Raw: raw, Source: "facts"})
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
	movers, err := clickhouse.NewUniverse(db).Movers(t.Context(), noon)
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

// TestMoverViewSplitsAsAttribute compares v1_mover with scoring.Attribute for companies that differ in anything: values,
// what is known, sector, end of the company, and records without signals.
func TestMoverViewSplitsAsAttribute(t *testing.T) {
	t.Parallel()
	db := open(t)
	s := scores(t, db)
	now, r := time.Now().UTC().Truncate(time.Millisecond), rand.New(rand.NewPCG(17, 19))
	const companies = 300
	var want []string
	for n := range companies {
		before, after := randomRecord(t, r, n, now.Add(-8*24*time.Hour)), randomRecord(t, r, n, now)
		if n%10 == 0 { // only the time differs
			after = before
			after.ScoredAt = now
		}
		if err := errors.Join(s.WriteGroup(t.Context(), []scoring.Record{before, after})...); err != nil {
			t.Fatal(err)
		}
		a := scoring.Attribute(before, after)
		want = append(want, fmt.Sprintf("%s %v %.1f %.1f %.1f %.1f %.1f %.1f %.1f %s %s %.1f %.1f %s %s", after.Domain, a.Delta != 0, before.Composite, after.Composite,
			a.Delta, a.Observation, a.Coverage, a.Premium, a.Defunct, before.Rating, after.Rating, before.CompletenessPct, after.CompletenessPct, before.Confidence, after.Confidence))
	}
	const statement = "SELECT format('{} {} {} {} {} {} {} {} {} {} {} {} {} {} {}', domain, toString(changed), toDecimalString(composite_then, 1), toDecimalString(composite_now, 1), " +
		"toDecimalString(delta, 1), toDecimalString(observation_delta, 1), toDecimalString(coverage_delta, 1), toDecimalString(premium_delta, 1), toDecimalString(defunct_delta, 1), " +
		"toString(rating_then), toString(rating_now), toDecimalString(completeness_pct_then, 1), toDecimalString(completeness_pct_now, 1), toString(confidence_then), toString(confidence_now)) " +
		"FROM v1_mover WHERE window_days = 7 ORDER BY domain"
	signless := strings.NewReplacer(" -0.0", " 0.0")
	for i, got := range column(t, db, statement) {
		if got, want := signless.Replace(got), signless.Replace(want[i]); got != want {
			t.Errorf("v1_mover has\n%s, want\n%s", got, want)
		}
	}
	if got := column(t, db, "SELECT toString(count()) FROM v1_mover"); got[0] != strconv.Itoa(companies) {
		t.Errorf("%s rows, want %d: only the window of 7 days has an earlier record", got, companies)
	}
}

// randomRecord returns a record of the company with that number.
func randomRecord(t *testing.T, r *rand.Rand, company int, at time.Time) scoring.Record {
	t.Helper()
	in := scoring.Input{Domain: fmt.Sprintf("%03d.com", company), Now: at}
	in.Identity.Industries = []string{[]string{"software", "bank", "retail", ""}[r.IntN(4)]}
	for _, signal := range scoring.Manifest() {
		switch r.IntN(3) {
		case 0:
			in.Observations = append(in.Observations, scoring.Observation{Signal: signal.ID, State: scoring.StateAbsent, Source: signal.Sources[0]})
		case 1:
			in.Observations = append(in.Observations, scoring.Observation{Signal: signal.ID, State: scoring.StateOK, Raw: signal.Curve.Raw(100 * r.Float64()), Source: signal.Sources[0]})
		}
	}
	if r.IntN(8) == 0 {
		in.Warnings = []scoring.Warning{{Source: scoring.FactsSource, Code: scoring.WarningDefunct, At: at}}
	}
	rec, err := scoring.Score(in)
	if err != nil {
		t.Fatal(err)
	}
	if r.IntN(8) == 0 {
		rec.Signals = nil
	}
	return rec
}
