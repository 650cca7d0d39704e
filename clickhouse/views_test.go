package clickhouse_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"companyscore/scoring"
)

// TestMoverViewSplitsAsAttribute compares v1_mover with scoring.Attribute for companies that differ in anything: values,
// what is known, sector, end of the company, and records without signals.
func TestMoverViewSplitsAsAttribute(t *testing.T) {
	t.Parallel()
	db := open(t)
	s := scores(t, db)
	now, r := time.Now().UTC().Truncate(time.Millisecond), rand.New(rand.NewPCG(17, 19))
	const companies = 300
	var want []string
	var records []scoring.Record
	for n := range companies {
		before, after := randomRecord(t, r, n, now.Add(-8*24*time.Hour)), randomRecord(t, r, n, now)
		if n%10 == 0 { // only the time differs
			after = before
			after.ScoredAt = now
		}
		records = append(records, before, after)
		a := scoring.Attribute(before, after)
		want = append(want, fmt.Sprintf("%s %v %.1f %.1f %.1f %.1f %.1f %.1f %.1f %s %s %.1f %.1f %s %s", after.Domain, a.Delta != 0,
			before.Composite, after.Composite,
			a.Delta, a.Observation, a.Coverage, a.Premium, a.Defunct, before.Rating, after.Rating, before.CompletenessPct,
			after.CompletenessPct, before.Confidence, after.Confidence))
	}
	if err := errors.Join(s.WriteGroup(t.Context(), records)...); err != nil {
		t.Fatal(err)
	}
	const statement = "SELECT format('{} {} {} {} {} {} {} {} {} {} {} {} {} {} {}', domain, toString(changed), " +
		"toDecimalString(composite_then, 1), toDecimalString(composite_now, 1), " +
		"toDecimalString(delta, 1), toDecimalString(observation_delta, 1), toDecimalString(coverage_delta, 1), " +
		"toDecimalString(premium_delta, 1), toDecimalString(defunct_delta, 1), " +
		"toString(rating_then), toString(rating_now), toDecimalString(completeness_pct_then, 1), toDecimalString(completeness_pct_now, " +
		"1), toString(confidence_then), toString(confidence_now)) " +
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

// randomInput returns the input of a run of the company with that number.
func randomInput(r *rand.Rand, company int, at time.Time) scoring.Input {
	in := scoring.Input{Domain: fmt.Sprintf("%03d.com", company), Now: at}
	in.Identity.Country = []string{"US", "DE", "", ""}[r.IntN(4)]
	in.Identity.Industries = []string{[]string{"software", "bank", "retail", ""}[r.IntN(4)]}
	for _, signal := range scoring.Manifest() {
		switch r.IntN(3) {
		case 0:
			in.Observations = append(in.Observations, scoring.Observation{Signal: signal.ID, State: scoring.StateAbsent,
				Source: signal.Sources[0]})
		case 1:
			in.Observations = append(in.Observations, scoring.Observation{Signal: signal.ID, State: scoring.StateOK,
				Raw: signal.Curve.Raw(100 * r.Float64()), Source: signal.Sources[0]})
		}
	}
	if r.IntN(8) == 0 {
		in.Warnings = []scoring.Warning{{Source: scoring.FactsSource, Code: scoring.WarningDefunct, At: at}}
	}
	return in
}

// randomRecord returns a record of the company with that number. One in eight has no signals.
func randomRecord(t *testing.T, r *rand.Rand, company int, at time.Time) scoring.Record {
	t.Helper()
	rec, err := scoring.Score(randomInput(r, company, at))
	if err != nil {
		t.Fatal(err)
	}
	if r.IntN(8) == 0 {
		rec.Signals = nil
	}
	return rec
}

// TestSignalViewSumsToBase compares v1_signal with scoring.Explain, signal by signal.
func TestSignalViewSumsToBase(t *testing.T) {
	t.Parallel()
	db := open(t)
	s := scores(t, db)
	now, r := time.Now().UTC().Truncate(time.Millisecond), rand.New(rand.NewPCG(19, 5))
	var want []string
	var records []scoring.Record
	for n := range 50 {
		rec := randomRecord(t, r, n, now)
		records = append(records, rec)
		sum := 0.0
		for _, part := range scoring.Explain(rec).Signals {
			want = append(want, fmt.Sprintf("%s %s %s %s %.6f", rec.Domain, part.ID, part.Bucket, part.Unit, part.Contribution+1e-9))
			sum += part.Contribution
		}
		if rec.Signals != nil && math.Abs(sum-rec.Base) > 1e-9 {
			t.Errorf("%s: contributions sum to %v, the base is %v", rec.Domain, sum, rec.Base)
		}
	}
	if err := errors.Join(s.WriteGroup(t.Context(), records)...); err != nil {
		t.Fatal(err)
	}
	got := column(t, db, "SELECT format('{} {} {} {} {}', s.domain, s.signal, s.bucket, s.unit, toDecimalString(contribution + 1e-9, 6)) "+
		"FROM v1_signal AS s JOIN v1_signal_definition AS d ON d.signal = s.signal ORDER BY s.domain, d.position")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := column(t, db,
		"SELECT toString((count(), round(sum(weight), 9), countIf(raw_p50 IS NULL) > 0)) FROM v1_signal_definition"); got[0] != "(67,1,1)" {
		t.Errorf("definitions: %s", got)
	}
}

// TestRatingChangesAreEachCrossing compares v1_rating_change with histories of random composites. Some records are written twice.
func TestRatingChangesAreEachCrossing(t *testing.T) {
	t.Parallel()
	db := open(t)
	s := scores(t, db)
	now, r := time.Now().UTC().Truncate(time.Millisecond), rand.New(rand.NewPCG(19, 6))
	var want []string
	var records, again []scoring.Record
	for n := range 40 {
		var before *scoring.Record
		for i := range r.IntN(12) {
			rec := scoring.Record{
				Domain: fmt.Sprintf("%03d.com", n), PipelineVersion: scoring.PipelineVersion,
				ScoredAt:  now.Add(time.Duration(i-20) * 48 * time.Hour),
				Composite: 20 + float64(r.IntN(600))/10, CompletenessPct: float64(r.IntN(100)), Confidence: scoring.BandLow,
				Profile: scoring.ProfileGrowth, Sector: "software", GeoScope: "global",
			}
			rec.Rating = scoring.RatingOf(rec.Composite)
			if records = append(records, rec); r.IntN(2) == 0 {
				again = append(again, rec)
			}
			if before != nil && before.Rating != rec.Rating {
				direction := "down"
				if rec.Composite > before.Composite {
					direction = "up"
				}
				want = append(want, fmt.Sprintf("%s %s %s %s %s %.1f %.1f %.0f %.0f", rec.Domain,
					rec.ScoredAt.Format("2006-01-02 15:04:05.000"), direction, before.Rating, rec.Rating,
					before.Composite, rec.Composite, before.CompletenessPct, rec.CompletenessPct))
			}
			before = &rec
		}
	}
	for _, group := range [][]scoring.Record{records, again} {
		if err := errors.Join(s.WriteGroup(t.Context(), group)...); err != nil {
			t.Fatal(err)
		}
	}
	got := column(t, db, "SELECT format('{} {} {} {} {} {} {} {} {}', domain, toString(scored_at), toString(direction), "+
		"toString(rating_before), toString(rating), "+
		"toDecimalString(composite_before, 1), toDecimalString(composite, 1), toDecimalString(completeness_pct_before, 0), "+
		"toDecimalString(completeness_pct, 0)) "+
		"FROM v1_rating_change ORDER BY domain, scored_at")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
