package seed

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"companyscore/internal/table"
	"companyscore/scoring"
)

// industries has a label of each sector with its share of companies in percent. The other
// companies have none.
var industries = []struct {
	label string
	share float64
}{
	{"software", 13}, {"machine learning", 6}, {"computer security", 3}, {"fintech", 5}, {"biotechnology", 5}, {"healthcare", 7},
	{"semiconductor", 4}, {"bank", 5}, {"construction", 5}, {"retail", 8}, {"travel", 3}, {"media", 5}, {"telecom", 2}, {"logistics", 4},
	{"energy", 4}, {"education", 3}, {"food", 4}, {"agriculture", 2}, {"manufacturing", 5}, {"consulting", 4}, {"nonprofit", 1},
}

// countries has the share of companies per country in percent. The other companies have
// none.
var countries = []struct {
	code  string
	share float64
}{
	{"US", 36}, {"GB", 8}, {"DE", 7}, {"FR", 5}, {"IN", 5}, {"CN", 4}, {"CA", 4}, {"JP", 4}, {"AU", 3}, {"BR", 3}, {"NL", 2}, {"SE", 2},
	{"ES", 2}, {"IT", 2}, {"SG", 2}, {"IL", 2}, {"KR", 1}, {"ZA", 1}, {"AE", 1}, {"MX", 1}, {"NG", 1},
}

// traits are the constant properties of a family.
type traits struct {
	size     float64 // 0 to 1, most are small
	coverage float64 // how much of it can be observed
	listed   bool
	identity scoring.Identity
	goodness map[scoring.Bucket]float64 // 0 to 1, moves with time
	failing  string                     // a source that does not answer, "" for none
}

// newFamily returns a family with its scored phases.
func newFamily(seed, number uint64) *[phases]table.SeedPhase {
	rng := rand.New(rand.NewPCG(hash64(seed), number))
	t := newTraits(rng)
	taste := make([]float64, scoring.SignalCount) // how each signal differs from its bucket, for good
	luck := make([]float64, scoring.SignalCount)  // whether each can be observed
	for i := range taste {
		taste[i], luck[i] = rng.NormFloat64(), rng.Float64()
	}
	inputs := make([]scoring.Input, phases)
	family := new([phases]table.SeedPhase)
	for v := range family {
		if v > 0 {
			t.move(rng)
		}
		inputs[v] = scoring.Input{Domain: "example.com", Now: time.UnixMilli(0), Identity: t.identity,
			Observations: t.observe(rng, taste, luck)}
		if t.failing != "" {
			inputs[v].Warnings = []scoring.Warning{{Source: t.failing, Code: "timeout"}}
		}
		family[v] = table.SeedPhase{ID: uint32(number)*phases + uint32(v), Record: mustScore(inputs[v])}
	}
	for v := range family {
		after := func(other int) float64 {
			if other < 0 || other >= phases {
				return family[v].Record.MomentumIndex
			}
			in := inputs[v]
			in.Reference = &scoring.Reference{ScoredAt: in.Now.Add(-scoring.ReferenceAge), Base: family[other].Record.Base}
			return mustScore(in).MomentumIndex
		}
		family[v].MomentumBefore, family[v].MomentumAfter = after(v-1), after(v+1)
	}
	return family
}

func mustScore(in scoring.Input) scoring.Record {
	rec, err := scoring.Score(in)
	if err != nil {
		panic(fmt.Sprintf("seed: %v", err)) // the manifest and this package do not fit
	}
	rec.Domain, rec.CompanyName, rec.ScoredAt = "", "", time.Time{}
	for i := range rec.Signals {
		rec.Signals[i].ObservedAt = time.Time{}
	}
	for i := range rec.Warnings {
		rec.Warnings[i].At = time.Time{}
	}
	return rec
}

func newTraits(rng *rand.Rand) *traits {
	t := &traits{size: math.Pow(rng.Float64(), 2.2), goodness: make(map[scoring.Bucket]float64)}
	t.coverage = clamp(0.42+0.45*t.size+0.12*rng.NormFloat64(), 0.1, 0.97)
	t.listed = t.size > 0.6 && rng.Float64() < t.size
	sector := -1
	if sector = pick(rng, len(industries), func(i int) float64 { return industries[i].share }); sector >= 0 {
		t.identity.Industries = []string{industries[sector].label}
	}
	if i := pick(rng, len(countries), func(i int) float64 { return countries[i].share }); i >= 0 {
		t.identity.Country = countries[i].code
	}
	if t.size > 0.7 {
		t.identity.HiringRegions = 3
	}
	common := 0.09 * rng.NormFloat64()
	for i, b := range scoring.Buckets() {
		climate := float64(hash64(uint64(sector+1)*4+uint64(i))%1000)/1000 - 0.5 // what is usual in the sector
		t.goodness[b] = clamp(0.44+common+0.07*rng.NormFloat64()+0.25*(t.size-0.3)+0.16*climate, 0.02, 0.98)
	}
	if rng.Float64() < 0.04 {
		t.failing = []string{"gdelt", "web", "ct", "wayback"}[rng.IntN(4)]
	}
	return t
}

// move changes the buckets by a month: a little for all families, much for a few.
func (t *traits) move(rng *rand.Rand) {
	jump := 0.0
	if rng.Float64() < 0.025 {
		jump = (0.12 + 0.18*rng.Float64()) * float64(1-2*rng.IntN(2))
	}
	for _, b := range scoring.Buckets() {
		t.goodness[b] = clamp(t.goodness[b]+jump+0.008*rng.NormFloat64(), 0.02, 0.98)
	}
}

// observe returns the observations of a phase.
func (t *traits) observe(rng *rand.Rand, taste, luck []float64) []scoring.Observation {
	var all []scoring.Observation
	for i, s := range scoring.Manifest() {
		source := s.Sources[0]
		o := scoring.Observation{Signal: s.ID, Source: source, State: scoring.StateMissing, Reason: scoring.ReasonNotFound}
		seen := t.coverage
		if source == "sec" || source == "history" {
			if seen = 0.12; t.listed {
				seen = 0.95
			}
			o.Reason = scoring.ReasonNotApplicable
		}
		switch {
		case source == t.failing:
			o.Reason = scoring.ReasonSourceTimeout
		case luck[i] < seen:
			o.State, o.Raw, o.Reason = scoring.StateOK, t.raw(s, taste[i], rng.NormFloat64()), ""
		case luck[i] < seen+0.6*(1-seen):
			o.State, o.Reason = scoring.StateAbsent, ""
		}
		all = append(all, o)
	}
	return all
}

// raw returns the value of a signal from its bucket, a constant offset and noise. Signals of
// size depend on the size.
func (t *traits) raw(s scoring.Signal, taste, noise float64) float64 {
	x := clamp(t.goodness[s.Bucket]+0.17*taste+0.01*noise, 0, 1)
	switch s.ID {
	case "employee_count", "revenue_latest_usd", "total_assets_usd", "market_value_usd", "wikipedia_language_count":
		x = clamp(t.size+0.06*taste+0.002*noise, 0, 1)
	case "traffic_rank":
		x = clamp(0.7*t.size+0.3*x, 0, 1)
	case "public_listing":
		if t.listed {
			return 1
		}
		return 0
	}
	raw := s.Curve.Raw(100 * x)
	switch {
	case s.Unit == "fraction" || strings.Contains(s.Unit, "ratio") || strings.HasPrefix(s.Unit, "share") ||
		strings.HasPrefix(s.Unit, "average"):
		return math.Round(raw*1000) / 1000
	case raw > 1e6:
		scale := math.Pow(10, math.Floor(math.Log10(raw))-2)
		return math.Round(raw/scale) * scale
	}
	return math.Round(max(raw, 0))
}

// pick returns an index by its share of a hundred, -1 for the rest.
func pick(rng *rand.Rand, n int, share func(int) float64) int {
	x := 100 * rng.Float64()
	for i := range n {
		if x -= share(i); x < 0 {
			return i
		}
	}
	return -1
}

func clamp(x, lo, hi float64) float64 { return max(lo, min(x, hi)) }
