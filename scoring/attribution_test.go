package scoring

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// randomRecord returns the record of random observations of a company.
func randomRecord(t *testing.T, r *rand.Rand) Record {
	t.Helper()
	in := Input{Domain: "example.com", Now: time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)}
	in.Identity.Industries = []string{[]string{"software", "bank", "retail", ""}[r.IntN(4)]}
	for _, s := range manifest {
		switch r.IntN(4) {
		case 0:
			in.Observations = append(in.Observations, Observation{Signal: s.ID, State: StateAbsent, Source: s.Sources[0]})
		case 1, 2:
			in.Observations = append(in.Observations, Observation{Signal: s.ID, State: StateOK, Raw: s.Curve.Raw(100 * r.Float64()),
				Source: s.Sources[0]})
		}
	}
	if r.IntN(10) == 0 {
		in.Warnings = []Warning{{Source: FactsSource, Code: WarningDefunct, At: in.Now}}
	}
	rec, err := Score(in)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

func TestAttributionSumsToDelta(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 6))
	for range 500 {
		before, after := randomRecord(t, r), randomRecord(t, r)
		if r.IntN(10) == 0 {
			after.PipelineVersion = "v0"
		}
		a, back := Attribute(before, after), Attribute(after, before)
		sum := a.Observation + a.Coverage + a.Premium + a.Formula + a.Defunct
		if math.Abs(sum-a.Delta) > 1e-9 || a.Delta != round1(after.Composite-before.Composite) {
			t.Fatalf("parts of %+v sum to %v", a, sum)
		}
		for i, pair := range [][2]float64{{a.Delta, back.Delta}, {a.Observation, back.Observation}, {a.Coverage, back.Coverage},
			{a.Premium, back.Premium}} {
			if math.Abs(pair[0]+pair[1]) > 1e-9 {
				t.Fatalf("part %d is %v, and %v of swapped records", i, pair[0], pair[1])
			}
		}
		var contributions float64
		for _, s := range a.Signals {
			contributions += s.Contribution
		}
		if math.Abs(contributions-(after.Base-before.Base)) > 1e-9 {
			t.Fatalf("contributions sum to %v, bases differ by %v", contributions, after.Base-before.Base)
		}
		if same := Attribute(before, before); same.Delta != 0 || same.Observation != 0 || same.Coverage != 0 || len(same.Signals) != 0 {
			t.Fatalf("equal records differ by %+v", same)
		}
	}
}

func TestAttributionNamesWhatChanged(t *testing.T) {
	record := func(observations ...Observation) Record {
		rec, err := Score(Input{Domain: "example.com", Now: time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC), Observations: observations})
		if err != nil {
			t.Fatal(err)
		}
		return rec
	}
	roles := func(n float64) Observation {
		return Observation{Signal: "open_roles", State: StateOK, Raw: n, Source: "jobs"}
	}
	revenue := Observation{Signal: "revenue_latest_usd", State: StateOK, Raw: 5e9, Source: "sec"}
	if a := Attribute(record(roles(1)), record(roles(400))); a.Observation != a.Delta || a.Delta <= 0 || a.Signals[0].ID != "open_roles" {
		t.Errorf("more roles: %+v", a)
	}
	if a := Attribute(record(), record(roles(400))); a.Coverage != a.Delta || a.Delta <= 0 {
		t.Errorf("roles became known: %+v", a)
	}
	moved := record(revenue)
	moved.ScalePremium, moved.Composite = moved.ScalePremium+1, moved.Composite+0.9 // rounded otherwise
	if a := Attribute(record(revenue), moved); a.Premium != a.Delta || a.Observation != 0 || a.Coverage != 0 {
		t.Errorf("only the premium moved: %+v", a)
	}
	gone, stillGone := record(roles(1)), record(roles(1), Observation{Signal: "revenue_growth_yoy", State: StateOK, Raw: 1, Source: "sec"})
	for _, rec := range []*Record{&gone, &stillGone} {
		rec.Warnings = []Warning{{Source: FactsSource, Code: WarningDefunct}}
		rec.fill(nil)
	}
	if a := Attribute(gone, stillGone); a.Delta != 0 || len(a.Signals) != 0 {
		t.Errorf("momentum of a defunct company: %+v", a)
	}
	if a := Attribute(record(), record(revenue)); a.Premium <= 0 || a.Coverage <= 0 || math.Abs(a.Premium+a.Coverage-a.Delta) > 1e-9 {
		t.Errorf("revenue became known: %+v", a)
	}
}
