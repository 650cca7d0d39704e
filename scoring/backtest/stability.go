package backtest

import (
	"cmp"
	"context"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"companyscore/scoring"
)

// Cliff is the effect of one fact on the composite of one company.
type Cliff struct {
	Domain string `json:"domain"`
	Fact   string `json:"fact"`
	// Points is the composite without the fact minus that with it.
	Points float64 `json:"points"`
}

// Cliffs are the effects of each known fact of each company, the status apart.
type Cliffs struct {
	Cases int `json:"cases"`
	// Max is the largest effect in points, without its sign.
	Max float64 `json:"max"`
	// Above3 and Above5 are the shares of cases with an effect of more than 3 and 5 points.
	Above3 float64      `json:"above_3_pct"`
	Above5 float64      `json:"above_5_pct"`
	Facts  []FactCliffs `json:"facts"`
	// Largest are the largest effects.
	Largest []Cliff `json:"largest"`
}

// FactCliffs are the effects of one fact in points, without their sign.
type FactCliffs struct {
	Fact   string  `json:"fact"`
	Cases  int     `json:"cases"`
	Median float64 `json:"median"`
	P95    float64 `json:"p95"`
	Max    float64 `json:"max"`
	Above3 float64 `json:"above_3_pct"`
}

// largestMax is the number of cliffs that are listed.
const largestMax = 5

// measureCliffs removes each known fact of each company in turn.
func measureCliffs(ctx context.Context, sample []scoring.CompanyFacts, now time.Time) (Cliffs, error) {
	var all []Cliff
	for _, c := range sample {
		if err := ctx.Err(); err != nil {
			return Cliffs{}, err
		}
		full := score(c, now, nil).Composite
		for _, f := range knownFacts(&c) {
			less := c
			f.remove(&less)
			all = append(all, Cliff{c.Domain, f.name, round1(score(less, now, nil).Composite - full)})
		}
	}
	return summarise(all), nil
}

// summarise returns the figures of cliffs in any order.
func summarise(all []Cliff) Cliffs {
	out := Cliffs{Cases: len(all), Facts: []FactCliffs{}, Largest: []Cliff{}}
	if len(all) == 0 {
		return out
	}
	slices.SortFunc(all, func(a, b Cliff) int {
		return cmp.Or(cmp.Compare(math.Abs(b.Points), math.Abs(a.Points)), cmp.Compare(a.Domain, b.Domain), cmp.Compare(a.Fact, b.Fact))
	})
	out.Largest = slices.Clone(all[:min(len(all), largestMax)])
	sizes := make(map[string][]float64)
	var every []float64
	for _, c := range slices.Backward(all) {
		sizes[c.Fact] = append(sizes[c.Fact], math.Abs(c.Points))
		every = append(every, math.Abs(c.Points))
	}
	out.Max, out.Above3, out.Above5 = quantile(every, 1), shareAbove(every, 3), shareAbove(every, 5)
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		s := sizes[name]
		out.Facts = append(out.Facts, FactCliffs{name, len(s), quantile(s, 0.5), quantile(s, 0.95), quantile(s, 1), shareAbove(s, 3)})
	}
	slices.SortStableFunc(out.Facts, func(a, b FactCliffs) int { return cmp.Compare(b.Max, a.Max) })
	return out
}

// shareAbove returns the share of values above a limit, in percent.
func shareAbove(xs []float64, limit float64) float64 {
	n := 0
	for _, x := range xs {
		if x > limit {
			n++
		}
	}
	return 100 * float64(n) / float64(len(xs))
}

// Monotone is the check that a raised fact never lowers the composite.
type Monotone struct {
	Fact string `json:"fact"`
	// Steps is the number of comparisons, Lowered that of those in which the composite fell.
	Steps   int `json:"steps"`
	Lowered int `json:"lowered"`
	// Worst is the largest fall in points, Domain the company with it.
	Worst  float64 `json:"worst"`
	Domain string  `json:"domain,omitempty"`
}

// measureMonotone raises each numeric fact that is better when higher.
func measureMonotone(ctx context.Context, sample []scoring.CompanyFacts, now time.Time) ([]Monotone, error) {
	all := []Monotone{}
	for _, f := range allFacts {
		if f.raise == nil {
			continue
		}
		out, err := raise(ctx, f, sample, now)
		if err != nil {
			return nil, err
		}
		if out.Steps > 0 {
			all = append(all, out)
		}
	}
	return all, nil
}

// raise sets a fact to each value of its grid, from the worst to the best. It varies the raw value of a
// signal only for companies that have one.
func raise(ctx context.Context, f fact, sample []scoring.CompanyFacts, now time.Time) (Monotone, error) {
	out := Monotone{Fact: f.name}
	for _, c := range sample {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		if isSignal(f) && !f.known(&c) {
			continue
		}
		last := math.Inf(-1)
		for i, v := range f.grid {
			f.raise(&c, v)
			composite := score(c, now, nil).Composite
			if i > 0 {
				out.Steps++
			}
			if fall := round1(last - composite); fall > 0 {
				out.Lowered++
				if fall > out.Worst {
					out.Worst, out.Domain = fall, c.Domain
				}
			}
			last = composite
		}
	}
	return out, nil
}

// Coverage is how often intervals from half of the facts hold the composite from all of them. Widths
// are means, in points.
type Coverage struct {
	Cases    int     `json:"cases"`
	SharePct float64 `json:"share_pct"`
	// Width is that of the intervals over what the removed facts decide.
	Width float64 `json:"width"`
	// FullWidth is that of the intervals over everything that is missing, as records have them.
	FullWidth float64 `json:"full_width"`
}

// measureCoverage removes half of the facts of each company at random. The interval is restricted to the
// signals that the removed facts decide, because what no fact of the file tells is missing on both
// sides. For the same reason it leaves out the age of the facts that stay. The spreads are those of
// other companies: the sample is split into folds parts.
func measureCoverage(ctx context.Context, sample []scoring.CompanyFacts, now time.Time, rng *rand.Rand) (Coverage, error) {
	order := rng.Perm(len(sample))
	var others [folds][]scoring.Record
	full := make([]scoring.Record, len(sample))
	for i, at := range order {
		full[at] = score(sample[at], now, nil)
		for part := range others {
			if part != i%folds {
				others[part] = append(others[part], full[at])
			}
		}
	}
	var spreads [folds]*scoring.Spreads
	for part := range spreads {
		spreads[part] = scoring.NewSpreads(others[part])
	}
	var out Coverage
	var held int
	for i, at := range order {
		if err := ctx.Err(); err != nil {
			return Coverage{}, err
		}
		c := sample[at]
		known := knownFacts(&c)
		rng.Shuffle(len(known), func(i, j int) { known[i], known[j] = known[j], known[i] })
		for _, f := range known[:len(known)/2] {
			f.remove(&c)
		}
		rec := score(c, now, spreads[i%folds])
		open := make(map[string]bool)
		for j, s := range full[at].Signals {
			if s.Known() && !rec.Signals[j].Known() {
				open[s.ID] = true
			}
			if rec.Signals[j].Known() {
				rec.Signals[j].ObservedAt = rec.ScoredAt
			}
		}
		if len(open) == 0 {
			continue
		}
		c.AsOf = now
		interval, _ := scoring.Likely(score(c, now, spreads[i%folds]), spreads[i%folds], func(signal string) bool { return open[signal] })
		out.Cases++
		out.Width += interval.High - interval.Low
		out.FullWidth += rec.Interval.High - rec.Interval.Low
		if interval.Low <= full[at].Composite && full[at].Composite <= interval.High {
			held++
		}
	}
	if out.Cases > 0 {
		n := float64(out.Cases)
		out.SharePct, out.Width, out.FullWidth = 100*float64(held)/n, out.Width/n, out.FullWidth/n
	}
	return out, nil
}
