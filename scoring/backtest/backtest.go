// Package backtest measures what scores are worth: it scores companies of a file of facts and
// compares the scores with outcomes that the file knows.
package backtest

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"companyscore/scoring"
	"companyscore/scoring/source"
)

// Company is a company of the sample with its outcome.
type Company struct {
	Facts scoring.CompanyFacts
	// Outcome is the number in the outcome column, NaN if it is empty.
	Outcome float64
}

// scoreFacts returns the record of facts alone.
func scoreFacts(facts scoring.CompanyFacts, now time.Time, spreads *scoring.Spreads) scoring.Record {
	got := source.FromFacts(facts, now)
	in := scoring.Input{
		Domain: facts.Domain, Now: now, Observations: got.Observations, Identity: source.NewCompany(got.Claims...).Identity(scoring.SiteText{}, facts.HiringRegions),
		Answered: []string{scoring.FactsSource}, Spreads: spreads,
	}
	if got.Defunct {
		in.Warnings = []scoring.Warning{{Source: scoring.FactsSource, Code: scoring.WarningDefunct, At: now}}
	}
	rec, err := scoring.Score(in)
	if err != nil {
		panic(fmt.Sprintf("score facts of %s: %v", facts.Domain, err)) // facts name signals of the manifest only
	}
	return rec
}

// fact is one fact that can be removed from a row.
type fact struct {
	name   string
	known  func(*scoring.CompanyFacts) bool
	remove func(*scoring.CompanyFacts)
}

func number(name string, field func(*scoring.CompanyFacts) **float64) fact {
	return fact{name, func(c *scoring.CompanyFacts) bool { return *field(c) != nil }, func(c *scoring.CompanyFacts) { *field(c) = nil }}
}

func value[T comparable](name string, field func(*scoring.CompanyFacts) *T) fact {
	var none T
	return fact{name, func(c *scoring.CompanyFacts) bool { return *field(c) != none }, func(c *scoring.CompanyFacts) { *field(c) = none }}
}

// removable lists the facts that decide a score, the status apart.
var removable = []fact{
	value("country", func(c *scoring.CompanyFacts) *string { return &c.Country }),
	value("industry", func(c *scoring.CompanyFacts) *string { return &c.Industry }),
	{"categories", func(c *scoring.CompanyFacts) bool { return len(c.Categories) > 0 }, func(c *scoring.CompanyFacts) { c.Categories = nil }},
	value("sic", func(c *scoring.CompanyFacts) *int { return &c.SIC }),
	value("founded_year", func(c *scoring.CompanyFacts) *int { return &c.FoundedYear }),
	number("employees", func(c *scoring.CompanyFacts) **float64 { return &c.Employees }),
	number("revenue_usd", func(c *scoring.CompanyFacts) **float64 { return &c.RevenueUSD }),
	number("total_assets_usd", func(c *scoring.CompanyFacts) **float64 { return &c.TotalAssetsUSD }),
	number("ebitda_usd", func(c *scoring.CompanyFacts) **float64 { return &c.EBITDAUSD }),
	number("market_cap_usd", func(c *scoring.CompanyFacts) **float64 { return &c.MarketCapUSD }),
	value("market_cap_class", func(c *scoring.CompanyFacts) *string { return &c.MarketCapClass }),
	number("pe_ratio", func(c *scoring.CompanyFacts) **float64 { return &c.PERatio }),
	number("price_sales", func(c *scoring.CompanyFacts) **float64 { return &c.PriceSales }),
	number("price_book", func(c *scoring.CompanyFacts) **float64 { return &c.PriceBook }),
	number("funding_total_usd", func(c *scoring.CompanyFacts) **float64 { return &c.FundingTotalUSD }),
	number("funding_rounds", func(c *scoring.CompanyFacts) **float64 { return &c.FundingRounds }),
	value("last_funding_date", func(c *scoring.CompanyFacts) *time.Time { return &c.LastFundingDate }),
	number("founders", func(c *scoring.CompanyFacts) **float64 { return &c.Founders }),
	value("hiring_regions", func(c *scoring.CompanyFacts) *int { return &c.HiringRegions }),
	{"listed", func(c *scoring.CompanyFacts) bool { return c.Listed != nil }, func(c *scoring.CompanyFacts) { c.Listed = nil }},
}

// Cliff is the effect of one fact on the composite of one company.
type Cliff struct {
	Domain string  `json:"domain"`
	Fact   string  `json:"fact"`
	Points float64 `json:"points"` // composite without the fact minus composite with it
}

// cliffs returns the effect of each known fact of each company, largest first.
func cliffs(sample []Company, now time.Time) []Cliff {
	var all []Cliff
	for _, c := range sample {
		full := scoreFacts(c.Facts, now, nil).Composite
		for _, f := range removable {
			if !f.known(&c.Facts) {
				continue
			}
			less := c.Facts
			f.remove(&less)
			all = append(all, Cliff{c.Facts.Domain, f.name, round1(scoreFacts(less, now, nil).Composite - full)})
		}
	}
	slices.SortFunc(all, func(a, b Cliff) int {
		return cmp.Or(cmp.Compare(math.Abs(b.Points), math.Abs(a.Points)), cmp.Compare(a.Domain, b.Domain), cmp.Compare(a.Fact, b.Fact))
	})
	return all
}

func round1(x float64) float64 { return math.Round(x*10) / 10 }

// Coverage is how often intervals from half of the facts hold the score from all of them.
type Coverage struct {
	Cases     int     `json:"cases"`
	SharePct  float64 `json:"share_pct"`
	MeanWidth float64 `json:"mean_width"`
	// FullWidth is the mean width of intervals over everything that is missing.
	FullWidth float64 `json:"full_width"`
}

// coverage removes half of the facts of each company at random. The interval is made from the spread
// of the other companies and is restricted to the signals that the removed facts decide: what no
// fact of the file tells is missing on both sides.
func coverage(sample []Company, now time.Time, rng *rand.Rand) Coverage {
	full := make([]scoring.Record, len(sample))
	for i, c := range sample {
		full[i] = scoreFacts(c.Facts, now, nil)
	}
	spreads := scoring.NewSpreads(full)
	var out Coverage
	var held int
	for i, c := range sample {
		var known []fact
		for _, f := range removable {
			if f.known(&c.Facts) {
				known = append(known, f)
			}
		}
		half := c.Facts
		rng.Shuffle(len(known), func(i, j int) { known[i], known[j] = known[j], known[i] })
		for _, f := range known[:len(known)/2] {
			f.remove(&half)
		}
		rec := scoreFacts(half, now, spreads)
		open := make(map[string]bool)
		for j, s := range full[i].Signals {
			if s.Known() && !rec.Signals[j].Known() {
				open[s.ID] = true
			}
		}
		if len(open) == 0 {
			continue
		}
		interval, _ := scoring.Likely(rec, spreads, func(signal string) bool { return open[signal] })
		out.Cases++
		out.MeanWidth += interval.High - interval.Low
		out.FullWidth += rec.Interval.High - rec.Interval.Low
		if interval.Low <= full[i].Composite && full[i].Composite <= interval.High {
			held++
		}
	}
	if out.Cases > 0 {
		n := float64(out.Cases)
		out.SharePct, out.MeanWidth, out.FullWidth = 100*float64(held)/n, out.MeanWidth/n, out.FullWidth/n
	}
	return out
}

// spearman returns the rank correlation of two lists of numbers, NaN for fewer than 3.
func spearman(xs, ys []float64) float64 {
	if len(xs) < 3 {
		return math.NaN()
	}
	return pearson(ranks(xs), ranks(ys))
}

// ranks returns the rank of each value from 1, equal values the middle of their ranks.
func ranks(xs []float64) []float64 {
	order := make([]int, len(xs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(xs[a], xs[b]) })
	out := make([]float64, len(xs))
	for i := 0; i < len(order); {
		j := i
		for j < len(order) && xs[order[j]] == xs[order[i]] {
			j++
		}
		for k := i; k < j; k++ {
			out[order[k]] = float64(i+j+1) / 2
		}
		i = j
	}
	return out
}

func pearson(xs, ys []float64) float64 {
	var mx, my float64
	for i := range xs {
		mx += xs[i]
		my += ys[i]
	}
	mx, my = mx/float64(len(xs)), my/float64(len(ys))
	var xy, xx, yy float64
	for i := range xs {
		dx, dy := xs[i]-mx, ys[i]-my
		xy, xx, yy = xy+dx*dy, xx+dx*dx, yy+dy*dy
	}
	return xy / math.Sqrt(xx*yy)
}

// auc returns the probability that a company of the first list has the higher score, equal scores
// counted half, with its standard error by Hanley and McNeil (1982).
func auc(better, worse []float64) (area, stderr float64) {
	r := ranks(slices.Concat(better, worse))
	var sum float64
	for i := range better {
		sum += r[i]
	}
	n, m := float64(len(better)), float64(len(worse))
	a := (sum - n*(n+1)/2) / (n * m)
	q1, q2 := a/(2-a), 2*a*a/(1+a)
	return a, math.Sqrt((a*(1-a) + (n-1)*(q1-a*a) + (m-1)*(q2-a*a)) / (n * m))
}

// modalShare returns the share of the most frequent value and the value.
func modalShare(xs []float64) (share, at float64) {
	counts := make(map[float64]int)
	for _, x := range xs {
		counts[x]++
	}
	best := 0
	for _, x := range slices.Sorted(maps.Keys(counts)) {
		if counts[x] > best {
			best, at = counts[x], x
		}
	}
	return float64(best) / float64(len(xs)), at
}
