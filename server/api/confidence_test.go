package api

import (
	"math"
	"slices"
	"testing"
	"time"

	"companyscore/scoring"
)

// scored returns the record of a bank: it is listed, was scored with one stale source, and some
// signals mean nothing for it.
func scored(t *testing.T, previous *scoring.Record, at time.Time, answered ...string) scoring.Record {
	t.Helper()
	in := scoring.Input{
		Domain: "bank.com", Now: at, Identity: scoring.Identity{Industries: []string{"bank"}}, Answered: answered, Previous: previous,
	}
	if slices.Contains(answered, "dns") {
		in.Observations = append(in.Observations, scoring.Observation{Signal: "saas_tooling_breadth", State: scoring.StateOK, Raw: 3,
			Source: "dns"})
	} else {
		in.Warnings = []scoring.Warning{{Source: "dns", Code: "timeout", At: at}}
	}
	in.Observations = append(in.Observations, scoring.Observation{Signal: "public_listing", State: scoring.StateOK, Raw: 1,
		Source: "wikidata"},
		scoring.Observation{Signal: "news_volume_90d", State: scoring.StateAbsent, Source: "gdelt"})
	rec, err := scoring.Score(in)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

func TestEverySignalIsCountedOnce(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	before := scored(t, nil, began, "dns", "wikidata", "gdelt")
	rec := scored(t, &before, began.Add(60*time.Hour), "wikidata", "gdelt")
	body := NewConfidence(rec)
	if body.SignalsObserved != 3 || body.SignalsNotApplicable < 10 || body.SignalsObserved+body.SignalsNotApplicable+
		len(body.Missing) != scoring.SignalCount ||
		body.SignalsNotApplicable != len(body.NotApplicable) {
		t.Errorf("%d observed, %d not applicable (%v), %d missing", body.SignalsObserved, body.SignalsNotApplicable, body.NotApplicable,
			len(body.Missing))
	}
	for _, id := range []string{"current_ratio", "github_followers", "funding_rounds"} { // a bank's, a bank's, a listed company's
		if !slices.Contains(body.NotApplicable, id) || slices.ContainsFunc(body.Missing, func(m MissingSignal) bool { return m.ID == id }) {
			t.Errorf("%s is not among %v only", id, body.NotApplicable)
		}
	}
	var total, observed, left int
	for _, b := range body.Buckets {
		total, observed, left = total+b.SignalsTotal, observed+b.SignalsObserved, left+b.SignalsNotApplicable
	}
	if total != body.SignalsTotal || observed != body.SignalsObserved || left != body.SignalsNotApplicable {
		t.Errorf("the buckets have %d, %d observed, %d not applicable", total, observed, left)
	}
	sum := rec.CompletenessPct / 100 // the rest of the composite rests on missing signals
	shares := scoring.Shares(rec)
	for _, m := range body.Missing {
		sum += m.CompositeWeight
		if i := slices.IndexFunc(rec.Signals, func(s scoring.SignalScore) bool {
			return s.ID == m.ID
		}); math.Abs(shares[i]-m.CompositeWeight) > 1e-6 {
			t.Errorf("%s has weight %v, want %v", m.ID, m.CompositeWeight, shares[i])
		}
	}
	if math.Abs(sum-1) > 0.001 {
		t.Errorf("observed and missing weights sum to %v", sum)
	}
}

func TestStaleSignalsHaveTheirAge(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	before := scored(t, nil, began, "dns", "wikidata", "gdelt")
	if fresh := NewConfidence(before); len(fresh.Stale) != 0 || len(fresh.Warnings) != 0 {
		t.Errorf("a first score has stale signals %+v, warnings %+v", fresh.Stale, fresh.Warnings)
	}
	rec := scored(t, &before, began.Add(60*time.Hour), "wikidata", "gdelt")
	body := NewConfidence(rec)
	want := StaleSignal{ID: "saas_tooling_breadth", Source: "dns", ObservedAt: Time(began), AgeDays: 2.5}
	if len(body.Stale) != 1 || body.Stale[0] != want {
		t.Errorf("stale signals %+v, want %+v", body.Stale, want)
	}
	reasons := make(map[string]Time)
	for _, w := range body.Warnings {
		reasons[w.Reason] = w.At
	}
	if len(body.Warnings) != 2 || reasons["stale"] != Time(began) || reasons["timeout"] != Time(rec.ScoredAt) {
		t.Errorf("warnings %+v", body.Warnings)
	}
	if body.Interval != rec.Interval || body.ExpectedComposite != rec.ExpectedComposite || body.Interval.Low > rec.Composite ||
		body.Interval.High < rec.Composite ||
		body.Interval.Low == body.Interval.High {
		t.Errorf("interval %+v, expected composite %v of %v", body.Interval, body.ExpectedComposite, rec.Composite)
	}
}

func TestSignalsOfOldManifestsAreShown(t *testing.T) {
	t.Parallel()
	body := NewConfidence(scoring.Record{Signals: []scoring.SignalScore{
		{ID: "retired_signal", State: scoring.StateMissing, Reason: scoring.ReasonNotFound}, {ID: "open_roles", State: scoring.StateMissing,
			Reason: scoring.ReasonNotFound},
	}})
	if len(body.Missing) != 2 || body.Missing[0].Name != "retired_signal" || body.Missing[0].CompositeWeight != 0 ||
		body.Missing[1].CompositeWeight != 0.25 {
		t.Errorf("missing signals %+v", body.Missing)
	}
}
