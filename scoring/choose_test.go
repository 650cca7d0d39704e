package scoring

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestChoose(t *testing.T) {
	t.Parallel()
	ok := func(source string, raw float64) Observation {
		return Observation{State: StateOK, Source: source, Raw: raw}
	}
	absent := func(source string) Observation { return Observation{State: StateAbsent, Source: source} }
	missing := func(source string, reason Reason) Observation {
		return Observation{State: StateMissing, Source: source, Reason: reason}
	}
	type said = []Observation

	// public_listing is known to wikidata and sec; an absence has a score.
	// employee_count is known to wikidata and web; an absence is missing.
	tests := []struct {
		name         string
		signal       string
		observations said
		want         SignalScore
	}{
		{
			"nobody spoke", "public_listing", nil,
			SignalScore{State: StateMissing, Reason: ReasonNotFound},
		},
		{
			"the source listed first wins", "public_listing",
			said{ok("sec", 1), ok("wikidata", 0)},
			SignalScore{State: StateOK, Source: "wikidata", Raw: 0},
		},
		{
			"facts win over every source", "public_listing",
			said{ok("wikidata", 0), ok("facts", 1), ok("sec", 0)},
			SignalScore{State: StateOK, Source: "facts", Raw: 1},
		},
		{
			"a source outside the list comes last", "public_listing",
			said{ok("archive", 0), ok("sec", 1)},
			SignalScore{State: StateOK, Source: "sec", Raw: 1},
		},
		{
			"a value of a late source wins over an absence of an early one", "public_listing",
			said{absent("wikidata"), ok("sec", 1)},
			SignalScore{State: StateOK, Source: "sec", Raw: 1},
		},
		{
			"a value wins over a failure", "public_listing",
			said{missing("wikidata", ReasonSourceTimeout), ok("sec", 1)},
			SignalScore{State: StateOK, Source: "sec", Raw: 1},
		},
		{
			"an absence wins over a source that could not be asked", "public_listing",
			said{absent("wikidata"), missing("sec", ReasonUnresolvedIdentity)},
			SignalScore{State: StateAbsent, Source: "wikidata"},
		},
		{
			"an absence is not believed when another listed source failed", "public_listing",
			said{absent("wikidata"), missing("sec", ReasonSourceTimeout)},
			SignalScore{State: StateMissing, Source: "sec", Reason: ReasonSourceTimeout},
		},
		{
			"an absence is believed when a source outside the list failed", "public_listing",
			said{absent("wikidata"), missing("archive", ReasonSourceTimeout)},
			SignalScore{State: StateAbsent, Source: "wikidata"},
		},
		{
			"an operator's absence is believed though a source failed", "public_listing",
			said{absent("facts"), missing("sec", ReasonSourceTimeout)},
			SignalScore{State: StateAbsent, Source: "facts"},
		},
		{
			"an absence that counts as missing", "employee_count",
			said{absent("wikidata"), absent("web")},
			SignalScore{State: StateMissing, Source: "wikidata", Reason: ReasonNotFound},
		},
		{
			"a missing signal without a reason", "employee_count",
			said{missing("web", "")},
			SignalScore{State: StateMissing, Source: "web", Reason: ReasonNotFound},
		},
		{
			"the raw value of a missing signal is not read", "employee_count",
			said{{State: StateMissing, Source: "web", Raw: math.NaN(), Reason: ReasonSourceDisabled}},
			SignalScore{State: StateMissing, Source: "web", Reason: ReasonSourceDisabled},
		},
		{
			"the reason of a known signal is not read", "public_listing",
			said{{State: StateOK, Source: "sec", Raw: 1, Reason: ReasonSourceError}},
			SignalScore{State: StateOK, Source: "sec", Raw: 1},
		},
		{
			"NaN is an error of its source", "employee_count",
			said{ok("wikidata", math.NaN())},
			SignalScore{State: StateMissing, Source: "wikidata", Reason: ReasonSourceError},
		},
		{
			"infinity is an error of its source", "employee_count",
			said{ok("wikidata", math.Inf(-1))},
			SignalScore{State: StateMissing, Source: "wikidata", Reason: ReasonSourceError},
		},
		{
			"a good value stands in for NaN", "employee_count",
			said{ok("facts", math.NaN()), ok("web", 250)},
			SignalScore{State: StateOK, Source: "web", Raw: 250},
		},
		{
			"of two values of one source the lower counts", "employee_count",
			said{ok("web", 300), ok("web", 250)},
			SignalScore{State: StateOK, Source: "web", Raw: 250},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, _ := Lookup(test.signal)
			want := test.want
			want.ID = s.ID
			want.Score = Neutral
			switch want.State {
			case StateOK:
				want.Score = s.Curve.Score(want.Raw)
			case StateAbsent:
				want.Score, _ = s.Curve.Absent()
			}
			in := Input{Domain: "example.com", Now: exampleNow}
			if want.Known() {
				want.ObservedAt = exampleNow.Truncate(time.Millisecond)
			}
			for _, o := range test.observations {
				o.Signal = test.signal
				in.Observations = append(in.Observations, o)
			}
			got := mustScore(t, in).Signals[indexOf(test.signal)]
			if got.doubt = 0; got != want {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestScoreRefuses(t *testing.T) {
	t.Parallel()
	f := func(name string, in Input, reason string) {
		t.Helper()
		rec, err := Score(in)
		if err == nil {
			t.Errorf("%s: scored as %v", name, rec.Composite)
		} else if !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %v, want it to say %q", name, err, reason)
		}
	}
	f("no domain", Input{}, "domain is empty")
	f("unknown signal", Input{
		Domain:       "example.com",
		Observations: []Observation{{Signal: "shoe_size", State: StateOK, Source: "web"}},
	}, `unknown signal "shoe_size"`)
	f("unknown state", Input{
		Domain:       "example.com",
		Observations: []Observation{{Signal: "open_roles", Source: "jobs"}},
	}, `unknown state ""`)
}
