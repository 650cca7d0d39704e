package scoring

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"
)

// rounds is the number of random inputs per property.
const rounds = 400

var (
	allReasons = []Reason{
		"", ReasonNotFound, ReasonNotApplicable, ReasonInsufficientHistory, ReasonUnresolvedIdentity,
		ReasonAmbiguousName, ReasonUnsupportedProvider, ReasonBlockedByRobots, ReasonSourceTimeout,
		ReasonSourceError, ReasonSourceRateLimited, ReasonSourceDisabled,
	}
	allSources = []string{
		"facts", "rdap", "dns", "tls", "ct", "web", "wikidata", "wikipedia", "sec", "gleif", "github",
		"jobs", "wayback", "hn", "gdelt", "tranco", "history", "elsewhere", "web|dns", "jobs|wikidata",
	}
)

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// randomRaw returns any float64, mostly one near the range of the signal.
func randomRaw(r *rand.Rand, s Signal) float64 {
	switch r.IntN(10) {
	case 0:
		return math.Float64frombits(r.Uint64())
	case 1:
		return pick(r, []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, -1, math.MaxFloat64, -math.MaxFloat64, 5e-324})
	case 2:
		return s.Curve.Raw(pick(r, knotScores[:]))
	case 3:
		return 10 * s.Curve.Raw(100*r.Float64())
	}
	return s.Curve.Raw(100 * r.Float64())
}

func randomObservation(r *rand.Rand, s Signal) Observation {
	o := Observation{Signal: s.ID, Source: pick(r, allSources)}
	if r.IntN(2) == 0 {
		o.Source = pick(r, s.Sources)
	}
	if o.Source == FactsSource {
		o.Origin = pick(r, []string{"", "crm", "filings"})
	}
	if r.IntN(3) == 0 { // some in the future
		o.At = exampleNow.Truncate(time.Millisecond).Add(24 * time.Hour * time.Duration(30-r.IntN(3000)))
	}
	switch r.IntN(5) {
	case 0:
		o.State = StateAbsent
	case 1:
		o.State, o.Reason = StateMissing, pick(r, allReasons)
	default:
		o.State, o.Raw = StateOK, randomRaw(r, s)
		if r.IntN(5) == 0 {
			o.Low, o.High = o.Raw-math.Abs(o.Raw)/2, o.Raw+math.Abs(o.Raw)/2
		}
	}
	return o
}

func randomInput(r *rand.Rand) Input {
	in := Input{Domain: pick(r, []string{"example.com", "firma.de", "shop.example.co.uk", "a.io"}), Now: exampleNow}
	for _, s := range Manifest() {
		// Most signals have one source, some none, some several.
		for range pick(r, []int{0, 1, 1, 1, 2, 4}) {
			in.Observations = append(in.Observations, randomObservation(r, s))
		}
	}
	for range r.IntN(6) {
		in.Warnings = append(in.Warnings, Warning{Source: pick(r, allSources), Code: "timeout", At: exampleNow})
	}
	if r.IntN(10) == 0 {
		in.Warnings = append(in.Warnings, Warning{Source: "facts", Code: WarningDefunct, At: exampleNow})
	}
	in.Identity.HiringRegions = r.IntN(5)
	in.Identity.Country = pick(r, []string{"", "US", "DE", "??"})
	in.Identity.Industries = []string{pick(r, []string{"", "software", "banks", "biotech", "grocery", "manufacturing"})}
	if r.IntN(2) == 0 {
		age := time.Duration(r.IntN(150)) * 24 * time.Hour
		in.Reference = &Reference{ScoredAt: exampleNow.Add(-age), Base: pick(r, []float64{0, 40, 100, math.NaN(), math.Inf(1)})}
	}
	return in
}

// forRandomInputs runs check with the same inputs in every test run.
func forRandomInputs(t *testing.T, check func(t *testing.T, r *rand.Rand, in Input)) {
	t.Helper()
	t.Parallel()
	for seed := range uint64(rounds) {
		r := rand.New(rand.NewPCG(seed, 67))
		check(t, r, randomInput(r))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func TestNumbersStayWithinBounds(t *testing.T) {
	forRandomInputs(t, func(t *testing.T, _ *rand.Rand, in Input) { checkBounds(t, mustScore(t, in)) })
}

// checkBounds checks the documented ranges of a record.
func checkBounds(t testing.TB, rec Record) {
	t.Helper()
	within := func(what string, x, hi float64) {
		t.Helper()
		if !(x >= 0 && x <= hi) {
			t.Errorf("%s is %v, not 0 to %v", what, x, hi)
		}
	}
	tenths := func(what string, x, hi float64) {
		t.Helper()
		within(what, x, hi)
		if x != round1(x) {
			t.Errorf("%s is %v, not one decimal", what, x)
		}
	}
	tenths("composite", rec.Composite, 100)
	within("base", rec.Base, 100)
	tenths("momentum index", rec.MomentumIndex, 100)
	tenths("completeness", rec.CompletenessPct, 100)
	tenths("premium", rec.ScalePremium, premiumMax)
	tenths("expected composite", rec.ExpectedComposite, 100)
	tenths("low end", rec.Interval.Low, rec.Composite)
	tenths("high end", rec.Interval.High, 100)
	if rec.Interval.High < rec.Composite {
		t.Errorf("interval %+v does not contain %v", rec.Interval, rec.Composite)
	}
	for _, b := range Buckets() {
		tenths(string(b), rec.Buckets.Get(b), 100)
		tenths(string(b)+" completeness", rec.BucketCompleteness.Get(b), 100)
	}
	if rec.Defunct() {
		if rec.Composite > DefunctMax || rec.ScalePremium != 0 || rec.Buckets.MomentumTailwinds != 0 || rec.Rating != Rating5 {
			t.Errorf("defunct with composite %v, premium %v, momentum %v, rating %s", rec.Composite, rec.ScalePremium,
				rec.Buckets.MomentumTailwinds, rec.Rating)
		}
	} else if !near(rec.Composite, min(rec.Base+rec.ScalePremium, 100), 0.051) {
		t.Errorf("composite %v is not base %v plus premium %v", rec.Composite, rec.Base, rec.ScalePremium)
	}
	if rec.Rating != RatingOf(rec.Composite) {
		t.Errorf("rating %s does not fit %v", rec.Rating, rec.Composite)
	}
	if len(rec.Signals) != SignalCount {
		t.Fatalf("%d signals, want %d", len(rec.Signals), SignalCount)
	}
	for i, s := range rec.Signals {
		if s.ID != manifest[i].ID {
			t.Errorf("signal %d is %s, want %s", i, s.ID, manifest[i].ID)
		}
		within(s.ID, s.Score, 100)
		if !finite(s.Raw) {
			t.Errorf("%s has the raw value %v", s.ID, s.Raw)
		}
		if missing := s.State == StateMissing; missing != (s.Reason != "") || !s.Known() && (s.Score != Neutral || s.Raw != 0) ||
			s.Known() == s.ObservedAt.IsZero() {
			t.Errorf("%+v contradicts itself", s)
		}
		if slices.Contains(manifest[i].NotFor, rec.Sector) != (s.State == StateNotApplicable) && !listingMatters(manifest[i]) {
			t.Errorf("%s is %s in %s", s.ID, s.State, rec.Sector)
		}
	}
}

// listingMatters reports whether the signal means nothing for listed or for unlisted companies.
func listingMatters(s Signal) bool {
	return slices.Contains(s.NotFor, Listed) || slices.Contains(s.NotFor, Unlisted)
}

func TestOrderOfObservationsDoesNotMatter(t *testing.T) {
	forRandomInputs(t, func(t *testing.T, r *rand.Rand, in Input) {
		want := mustScore(t, in)
		in.Observations = slices.Clone(in.Observations)
		r.Shuffle(len(in.Observations), reflect.Swapper(in.Observations))
		if got := mustScore(t, in); !reflect.DeepEqual(got, want) {
			t.Errorf("shuffled observations give another record\ngot  %+v\nwant %+v", got, want)
		}
	})
}

// Without the observations of some signals, these score exactly 50 and all others are unchanged.
func TestMissingDataMovesNoOtherSignal(t *testing.T) {
	forRandomInputs(t, func(t *testing.T, r *rand.Rand, in Input) {
		full := mustScore(t, in)
		lost := map[string]bool{}
		for range r.IntN(SignalCount) {
			lost[manifest[r.IntN(SignalCount)].ID] = true
		}
		in.Observations = slices.DeleteFunc(slices.Clone(in.Observations), func(o Observation) bool { return lost[o.Signal] })
		rest := mustScore(t, in)
		for i, s := range rest.Signals {
			switch {
			case listingMatters(manifest[i]): // depends on the listing
			case lost[s.ID] && (s.Score != 50 || s.State != StateMissing && s.State != StateNotApplicable):
				t.Errorf("%s was lost and became %+v", s.ID, s)
			case !lost[s.ID] && s != full.Signals[i]:
				t.Errorf("%s went from %+v to %+v", s.ID, full.Signals[i], s)
			}
		}
		if !lost["public_listing"] && rest.CompletenessPct > full.CompletenessPct {
			t.Errorf("completeness rose from %v to %v", full.CompletenessPct, rest.CompletenessPct)
		}
	})
}

func TestScoresFollowTheDirection(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 67))
	for _, s := range Manifest() {
		for range rounds {
			checkDirection(t, s.Curve, s.Direction, randomRaw(r, s), randomRaw(r, s))
		}
		if t.Failed() {
			t.Fatal(s.ID)
		}
	}
}

// FuzzScore varies one raw value among random others.
func FuzzScore(f *testing.F) {
	f.Add(uint64(0), "example.com", "Example", "software", byte(0), 250.0)
	f.Add(uint64(1), ".", "&lt;\u202e&#0;\xff", "ſoftware", byte(17), math.Inf(1))
	f.Add(uint64(2), "xn--bcher-kva.ch", "", "", byte(33), math.NaN())
	f.Fuzz(func(t *testing.T, seed uint64, domain, name, text string, signal byte, raw float64) {
		if domain == "" {
			domain = "example.com"
		}
		in := randomInput(rand.New(rand.NewPCG(seed, 67)))
		in.Domain, in.Identity.Name, in.Identity.Country = domain, name, text
		in.Identity.Industries, in.Identity.SIC = []string{text}, int(seed%10_000)
		in.Identity.Site = SiteText{Title: text, Description: name, Links: domain}
		in.Observations = append(in.Observations, Observation{
			Signal: manifest[int(signal)%SignalCount].ID, State: StateOK, Source: FactsSource, Raw: raw,
		})
		rec := mustScore(t, in)
		checkBounds(t, rec)
		if rec.CompanyName == "" || rec.Sector == "" || rec.GeoScope == "" {
			t.Errorf("name %q, sector %q and geo scope %q must not be empty", rec.CompanyName, rec.Sector, rec.GeoScope)
		}
	})
}
