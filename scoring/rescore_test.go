package scoring

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

func TestRescoreWithSameFormulasChangesNothing(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(21, 22))
	for range rounds {
		in := Input{Domain: "example.co.uk", RunID: "run", Now: exampleNow, Identity: Identity{Name: " Example\u200b ",
			Industries: []string{pick(r, []string{"software", "bank", ""})}}}
		in.Identity.Country = pick(r, []string{"", "us", "EU", "??", "BR"})
		in.Identity.HiringRegions = r.IntN(5)
		for _, s := range Manifest() {
			if r.IntN(3) > 0 { // one source: a doubt between two is not stored
				o := randomObservation(r, s)
				o.Low, o.High = 0, 0
				in.Observations = append(in.Observations, o)
			}
		}
		if r.IntN(2) == 0 {
			in.Warnings = []Warning{{Source: "dns", Code: "timeout", At: exampleNow}}
			in.Reference = &Reference{ScoredAt: exampleNow.AddDate(0, 0, -r.IntN(150)), Base: 100 * r.Float64()}
		}
		if r.IntN(2) == 0 {
			// Ranges and sources that disagree are not stored, so each signal has one value.
			previous := mustScore(t, Input{Domain: in.Domain, Now: in.Now.Add(-6 * time.Hour), Observations: randomValues(r)})
			in.Previous, in.Answered, in.Observations = &previous, []string{"web", "jobs"}, nil
		}
		want := mustScore(t, in)
		got, err := Rescore(want, in.Reference)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want.Signals {
			want.Signals[i].carried = false // not stored
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("got  %+v\nwant %+v", got, want)
		}
	}
}

// randomValues returns at most one value of each signal.
func randomValues(r *rand.Rand) (out []Observation) {
	for _, s := range Manifest() {
		if o := randomObservation(r, s); r.IntN(3) > 0 {
			o.Low, o.High = 0, 0
			out = append(out, o)
		}
	}
	return out
}

func TestRescoringMeetsAnotherManifest(t *testing.T) {
	t.Parallel()
	old := mustScore(t, Input{Domain: "example.com", Now: exampleNow,
		Observations: []Observation{{Signal: "traffic_rank", State: StateOK, Raw: 10, Source: "tranco"}}})
	old.Signals = append(old.Signals[1:], SignalScore{ID: "abolished", State: StateOK, Raw: 1, Source: "web"}) // employee_count is new
	old.Composite, old.Rating = 1, Rating5
	got, err := Rescore(old, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Signals) != SignalCount || got.Signals[0].State != StateMissing || got.Signals[0].Reason != ReasonNotFound {
		t.Errorf("got %d signals, the first %+v", len(got.Signals), got.Signals[0])
	}
	if got.Composite == 1 || got.Rating == Rating5 {
		t.Errorf("the old result stands: %v %s", got.Composite, got.Rating)
	}
	if _, err := Rescore(Record{Domain: "example.com"}, nil); err == nil {
		t.Error("a record without signals was rescored")
	}
}

func TestReferenceAmongRecords(t *testing.T) {
	t.Parallel()
	f := func(want float64, ages ...int) {
		t.Helper()
		var earlier []Reference
		for _, days := range ages {
			earlier = append(earlier, Reference{ScoredAt: exampleNow.Add(-time.Duration(days) * 24 * time.Hour), Base: float64(days)})
		}
		got := ReferenceAmong(earlier, exampleNow)
		if got == nil && want != 0 || got != nil && got.Base != want {
			t.Errorf("of ages %v: got %+v, want the one of %v days", ages, got, want)
		}
	}
	f(0)
	f(0, 121, 19)
	f(120, 200, 120, 10)
	f(20, 200, 20, 10)
	f(28, 60, 28, 21)
	f(35, 35, 25) // of two equally near the older
}
