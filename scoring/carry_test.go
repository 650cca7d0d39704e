package scoring

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

const aDay = 24 * time.Hour

// Observations of a run in which one source, or several, had news of a signal.
func TestCarryForward(t *testing.T) {
	t.Parallel()
	ok := func(source string, raw float64) Observation {
		return Observation{State: StateOK, Source: source, Raw: raw}
	}
	absent := func(source string) Observation { return Observation{State: StateAbsent, Source: source} }
	missing := func(source string, reason Reason) Observation {
		return Observation{State: StateMissing, Source: source, Reason: reason}
	}
	f := func(name, signal string, age time.Duration, old []Observation, answered []string, now []Observation, want Observation,
		stale bool) {
		t.Helper()
		of := func(observations []Observation) (out []Observation) {
			for _, o := range observations {
				o.Signal = signal
				out = append(out, o)
			}
			return out
		}
		previous := mustScore(t, Input{Domain: "example.com", Now: exampleNow, Observations: of(old)})
		in := Input{Domain: "example.com", Now: exampleNow.Truncate(time.Millisecond).Add(age), Observations: of(now), Answered: answered,
			Previous: &previous}
		for _, o := range now {
			if o.Reason.failure() {
				in.Warnings = append(in.Warnings, Warning{Source: o.Source, Code: "timeout", At: in.Now})
			}
		}
		rec := mustScore(t, in)
		got := rec.Signals[indexOf(signal)]
		if got.State != want.State || got.Raw != want.Raw || got.Known() && got.Source != want.Source || got.Old(rec.ScoredAt) != stale {
			t.Errorf("%s: %+v, stale %v; want %+v, stale %v", name, got, got.Old(rec.ScoredAt), want, stale)
		}
		warned := slices.ContainsFunc(rec.Warnings, func(w Warning) bool {
			return w.Code == WarningStale && slices.Contains(strings.Split(want.Source, "|"), w.Source) &&
				w.At.Equal(exampleNow.Truncate(time.Millisecond))
		})
		if warned != stale {
			t.Errorf("%s: warnings %v", name, rec.Warnings)
		}
	}
	const timeout = ReasonSourceTimeout
	both, none := []string{"wikidata", "web"}, []string(nil)
	wiki, web := ok("wikidata", 100), ok("web", 70)
	type said = []Observation
	headcount := func(name string, age int, old said, answered []string, now said, want Observation, stale bool) {
		t.Helper()
		f(name, "employee_count", time.Duration(age)*aDay, old, answered, now, want, stale)
	}
	headcount("a failed source", 1, said{wiki}, []string{"web"}, said{missing("wikidata", timeout)}, wiki, true)
	headcount("a source that was not asked", 1, said{wiki}, none, nil, wiki, true)
	headcount("a source that is off", 1, said{wiki}, none, said{missing("wikidata", ReasonSourceDisabled)}, wiki, true)
	headcount("at the largest age", 2190, said{wiki}, none, nil, wiki, true)
	headcount("beyond the largest age", 2191, said{wiki}, none, nil, missing("", ""), false)
	headcount("a source that has no value any more", 1, said{wiki}, both, said{missing("wikidata", ReasonNotFound)}, missing("", ""), false)
	headcount("a new value", 1, said{wiki}, both, said{ok("wikidata", 120)}, ok("wikidata", 120), false)
	headcount("a less trusted source while the other failed", 1, said{wiki}, []string{"web"}, said{missing("wikidata", timeout), web}, wiki,
		true)
	headcount("a more trusted source while the other failed", 1, said{web}, []string{"wikidata"}, said{wiki, missing("web", timeout)}, wiki,
		false)
	headcount("the other source has no value", 1, said{web}, []string{"wikidata"}, said{missing("wikidata", ReasonNotFound),
		missing("web", timeout)}, web, true)
	headcount("the other source has no value, one is off", 1, said{web}, []string{"wikidata"}, said{missing("wikidata", ReasonNotFound)},
		web, true)
	headcount("a fact while the source failed", 1, said{wiki}, []string{FactsSource},
		said{missing("wikidata", timeout), ok(FactsSource, 90)}, ok(FactsSource, 90), false)
	headcount("the identity is not known because of a failure", 1, said{wiki}, both, said{missing("wikidata", ReasonUnresolvedIdentity),
		missing("rdap", timeout)}, wiki, true)
	headcount("the identity is not known any more", 1, said{wiki}, both, said{missing("wikidata", ReasonUnresolvedIdentity)},
		missing("", ""), false)

	listed := ok("sec", 1)
	listing := func(name string, old said, answered []string, now said, want Observation, stale bool) {
		t.Helper()
		f(name, "public_listing", aDay, old, answered, now, want, stale)
	}
	listing("an absence while the source of a value failed", said{listed}, []string{"wikidata"},
		said{absent("wikidata"), missing("sec", timeout)}, listed, true)
	listing("an absence while the source of a value is off", said{listed}, []string{"wikidata"}, said{absent("wikidata")}, listed, true)
	listing("an absence of all", said{listed}, []string{"wikidata", "sec"}, said{absent("wikidata"), absent("sec")}, absent("wikidata"),
		false)
	listing("a value after an absence", said{absent("wikidata")}, []string{"sec"}, said{missing("wikidata", timeout), listed}, listed,
		false)
	listing("an absence while another source failed", said{absent("wikidata")}, []string{"wikidata"},
		said{absent("wikidata"), missing("sec", timeout)}, absent("wikidata"), true)

	program := ok("web|dns", 3)
	security := func(name string, answered []string, now said, want Observation, stale bool) {
		t.Helper()
		f(name, "security_program", aDay, said{program}, answered, now, want, stale)
	}
	security("one of two sources failed", []string{"web"}, said{missing("dns", timeout)}, program, true)
	security("both sources answered", []string{"web", "dns"}, said{missing("web", ReasonNotApplicable)}, missing("", ""), false)
	security("both sources have a new value", []string{"web", "dns"}, said{ok("web|dns", 4)}, ok("web|dns", 4), false)
}

// A run of which all sources fail repeats the previous record. All its signals are stale.
func TestFailureOfAllSourcesChangesNothing(t *testing.T) {
	t.Parallel()
	for seed := range uint64(rounds) {
		r := rand.New(rand.NewPCG(seed, 71))
		in := randomInput(r)
		in.Reference = nil
		before := mustScore(t, in)
		again := Input{Domain: in.Domain, Now: in.Now.Add(6 * time.Hour), Previous: &before}
		for _, source := range allSources {
			again.Warnings = append(again.Warnings, Warning{Source: source, Code: "timeout", At: again.Now})
		}
		for _, s := range Manifest() {
			for _, source := range s.Sources {
				again.Observations = append(again.Observations, Observation{Signal: s.ID, State: StateMissing, Source: source,
					Reason: ReasonSourceTimeout})
			}
		}
		after := mustScore(t, again)
		if after.Composite != before.Composite || after.Base != before.Base || after.Sector != before.Sector ||
			after.GeoScope != before.GeoScope ||
			after.Country != before.Country || after.Profile != before.Profile || after.Defunct() != before.Defunct() ||
			after.CompletenessPct != before.CompletenessPct {
			t.Fatalf("seed %d\nbefore %+v\nafter  %+v", seed, before, after)
		}
		for i, s := range after.Signals {
			if s.Known() != before.Signals[i].Known() || s.Known() && !s.Old(after.ScoredAt) {
				t.Fatalf("seed %d: %+v after %+v", seed, s, before.Signals[i])
			}
		}
		if wider := after.Interval; !after.Defunct() && wider.High-wider.Low < before.Interval.High-before.Interval.Low-10 {
			t.Fatalf("seed %d: interval %v after %v", seed, wider, before.Interval)
		}
	}
}

// One failing source changes no composite while its observations are fresh enough, in any order of
// runs.
func TestFailureOfOneSourceChangesNothing(t *testing.T) {
	t.Parallel()
	for _, e := range examples[:2] { // without failures
		in := exampleInput(t, e)
		in.Reference = nil
		in.Answered = allSources
		before := mustScore(t, in)
		for _, failed := range allSources {
			again := in
			again.Now = in.Now.Add(time.Hour)
			again.Previous = &before
			again.Answered = slices.DeleteFunc(slices.Clone(allSources), func(source string) bool { return source == failed })
			again.Warnings = []Warning{{Source: failed, Code: "timeout", At: again.Now}}
			again.Observations = slices.Clone(in.Observations)
			for i, o := range again.Observations {
				if o.Source == failed {
					again.Observations[i] = Observation{Signal: o.Signal, State: StateMissing, Source: failed, Reason: ReasonSourceTimeout}
				}
			}
			if after := mustScore(t, again); after.Composite != before.Composite || after.Sector != before.Sector {
				t.Errorf("%s: %v %s without %s, before %v %s", e.name, after.Composite, after.Sector, failed, before.Composite,
					before.Sector)
			}
		}
	}
}

func TestDefunctWarningIsCarriedForward(t *testing.T) {
	t.Parallel()
	in := exampleInput(t, examples[0])
	in.Warnings = []Warning{{Source: "wikidata", Code: WarningDefunct, At: in.Now}}
	rec := mustScore(t, in)
	for day := 100; day <= 500; day += 100 {
		next := Input{Domain: in.Domain, Now: in.Now.Add(time.Duration(day) * aDay), Previous: &rec}
		rec = mustScore(t, next)
		if want := day <= 400; rec.Defunct() != want {
			t.Errorf("after %d days: defunct %v", day, rec.Defunct())
		}
		next.Answered = []string{"wikidata"}
		if alive := mustScore(t, next); alive.Defunct() {
			t.Errorf("after %d days: defunct though wikidata answered", day)
		}
	}
}

// A better raw value never lowers the base or the premium.
func TestCompositeFollowsEachValue(t *testing.T) {
	t.Parallel()
	for seed := range uint64(rounds) {
		r := rand.New(rand.NewPCG(seed, 72))
		in := randomInput(r)
		s := pick(r, manifest)
		if s.ID == "public_listing" { // decides which signals are applicable
			continue
		}
		in.Identity = Identity{Industries: []string{"software"}}
		a, b := s.Curve.Raw(100*r.Float64()), s.Curve.Raw(100*r.Float64())
		if (a > b) == (s.Direction == DirectionHigher) {
			a, b = b, a
		}
		with := func(raw float64) Record {
			in := in
			in.Observations = append(slices.Clone(in.Observations), Observation{Signal: s.ID, State: StateOK, Raw: raw,
				Source: FactsSource})
			in.Observations = slices.DeleteFunc(in.Observations, func(o Observation) bool { return o.Signal == s.ID && o.Raw != raw })
			return mustScore(t, in)
		}
		low, high := with(a), with(b)
		if low.Base > high.Base+1e-9 || low.ScalePremium > high.ScalePremium || low.Composite > high.Composite {
			t.Fatalf("seed %d: %s of %v gives %v, of %v gives %v", seed, s.ID, a, low.Composite, b, high.Composite)
		}
	}
}

// An observation of a signal that is not applicable changes nothing.
func TestNotApplicableSignalsHaveNoEffect(t *testing.T) {
	forRandomInputs(t, func(t *testing.T, r *rand.Rand, in Input) {
		want := mustScore(t, in)
		in.Observations = slices.DeleteFunc(slices.Clone(in.Observations), func(o Observation) bool {
			return slices.Contains(manifest[signalIndex[o.Signal]].NotFor, want.Sector)
		})
		got := mustScore(t, in)
		if got.Composite != want.Composite || got.CompletenessPct != want.CompletenessPct || got.Interval != want.Interval ||
			!reflect.DeepEqual(got.Signals, want.Signals) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	})
}

// A missing signal that becomes known narrows the interval.
func TestIntervalNarrowsWithKnowledge(t *testing.T) {
	forRandomInputs(t, func(t *testing.T, r *rand.Rand, in Input) {
		in.Warnings = nil
		before := mustScore(t, in)
		i := r.IntN(SignalCount)
		if before.Signals[i].State != StateMissing || i == publicListing || before.Interval.Low == 0 || before.Interval.High == 100 {
			return
		}
		in.Observations = append(slices.Clone(in.Observations), Observation{Signal: manifest[i].ID, State: StateOK,
			Raw: manifest[i].Curve.Raw(60), Source: FactsSource})
		in.Observations = slices.DeleteFunc(in.Observations, func(o Observation) bool {
			return o.Signal == manifest[i].ID && o.Source != FactsSource
		})
		after := mustScore(t, in)
		// each end is rounded
		if was, is := before.Interval.High-before.Interval.Low, after.Interval.High-after.Interval.Low; is > was+0.2+1e-9 {
			t.Errorf("%s became known: the interval of %v is %v wide, that of %v was %v", manifest[i].ID, after.Composite, is,
				before.Composite, was)
		}
	})
}

// With everything known and nothing in doubt the interval is one point, whatever the spreads are.
func TestNothingMissingLeavesNoDoubt(t *testing.T) {
	t.Parallel()
	rec := mustScore(t, exampleInput(t, examples[0]))
	other := mustScore(t, exampleInput(t, examples[1]))
	spreads := NewSpreads(slices.Repeat([]Record{rec, other}, 30))
	in := exampleInput(t, examples[0])
	in.Spreads = spreads
	rec = mustScore(t, in)
	if rec.ExpectedComposite != rec.Composite || rec.Interval != (Interval{rec.Composite, rec.Composite, IntervalLevel}) {
		t.Errorf("expected %v of %v, interval %v", rec.ExpectedComposite, rec.Composite, rec.Interval)
	}
	in = exampleInput(t, examples[2])
	in.Spreads = spreads
	if small := mustScore(t, in); small.ExpectedComposite <= small.Composite {
		t.Errorf("expected %v of %v among better companies", small.ExpectedComposite, small.Composite)
	}
}

func TestDoubtWidensTheInterval(t *testing.T) {
	t.Parallel()
	width := func(observations ...Observation) float64 {
		in := exampleInput(t, examples[0])
		in.Observations = append(in.Observations, observations...)
		rec := mustScore(t, in)
		return rec.Interval.High - rec.Interval.Low
	}
	if got := width(Observation{Signal: "revenue_latest_usd", State: StateOK, Raw: 1e6, Source: "wikidata"}); got < 1 {
		t.Errorf("sources that differ: %v wide", got)
	}
	if got := width(Observation{Signal: "market_value_usd", State: StateOK, Raw: 1e9, Low: 1e7, High: 1e11,
		Source: FactsSource}); got < 0.3 {
		t.Errorf("a range: %v wide", got)
	}
	if got := width(Observation{Signal: "revenue_latest_usd", State: StateOK, Raw: 2.1e10, Source: "wikidata"}); got != 0 {
		t.Errorf("sources that agree: %v wide", got)
	}
}
