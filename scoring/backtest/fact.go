package backtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"companyscore/scoring"
	"companyscore/scoring/source"
)

// fact is one column of a file that decides a score.
type fact struct {
	name  string
	known func(*scoring.CompanyFacts) bool
	// remove makes the fact unknown. It changes no shared memory.
	remove func(*scoring.CompanyFacts)
	// raise sets a numeric fact that is better when higher; nil for any other. grid has its values.
	raise func(*scoring.CompanyFacts, float64)
	grid  []float64
}

func number(name string, field func(*scoring.CompanyFacts) **float64, grid ...float64) fact {
	f := fact{
		name: name, grid: grid,
		known:  func(c *scoring.CompanyFacts) bool { return *field(c) != nil },
		remove: func(c *scoring.CompanyFacts) { *field(c) = nil },
	}
	if grid != nil {
		f.raise = func(c *scoring.CompanyFacts, v float64) { *field(c) = &v }
	}
	return f
}

func value[T comparable](name string, field func(*scoring.CompanyFacts) *T) fact {
	var none T
	return fact{
		name:   name,
		known:  func(c *scoring.CompanyFacts) bool { return *field(c) != none },
		remove: func(c *scoring.CompanyFacts) { *field(c) = none },
	}
}

// status is the fact that may move a score by any number of points.
var status = value("status", func(c *scoring.CompanyFacts) *string { return &c.Status })

// Grids of the check that no raised fact lowers a score.
var (
	amounts = []float64{0, 1e3, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12}
	counts  = []float64{0, 1, 10, 100, 1e3, 1e4, 1e5, 1e6}
	few     = []float64{0, 1, 2, 3, 5, 8, 13}
	results = []float64{-1e10, -1e8, -1e6, 0, 1e6, 1e8, 1e10, 1e11}
)

// columnFacts are the facts with a column of their own, the status apart. Price ratios are neither
// better nor worse when higher.
var columnFacts = []fact{
	value("country", func(c *scoring.CompanyFacts) *string { return &c.Country }),
	value("industry", func(c *scoring.CompanyFacts) *string { return &c.Industry }),
	{name: "categories", known: func(c *scoring.CompanyFacts) bool {
		return len(c.Categories) > 0
	}, remove: func(c *scoring.CompanyFacts) { c.Categories = nil }},
	value("sic", func(c *scoring.CompanyFacts) *int { return &c.SIC }),
	value("founded_year", func(c *scoring.CompanyFacts) *int { return &c.FoundedYear }),
	number("employees", func(c *scoring.CompanyFacts) **float64 { return &c.Employees }, counts...),
	number("revenue_usd", func(c *scoring.CompanyFacts) **float64 { return &c.RevenueUSD }, amounts...),
	number("total_assets_usd", func(c *scoring.CompanyFacts) **float64 { return &c.TotalAssetsUSD }, amounts...),
	number("ebitda_usd", func(c *scoring.CompanyFacts) **float64 { return &c.EBITDAUSD }, results...),
	number("market_cap_usd", func(c *scoring.CompanyFacts) **float64 { return &c.MarketCapUSD }, amounts...),
	value("market_cap_class", func(c *scoring.CompanyFacts) *string { return &c.MarketCapClass }),
	number("pe_ratio", func(c *scoring.CompanyFacts) **float64 { return &c.PERatio }),
	number("price_sales", func(c *scoring.CompanyFacts) **float64 { return &c.PriceSales }),
	number("price_book", func(c *scoring.CompanyFacts) **float64 { return &c.PriceBook }),
	number("funding_total_usd", func(c *scoring.CompanyFacts) **float64 { return &c.FundingTotalUSD }, amounts...),
	number("funding_rounds", func(c *scoring.CompanyFacts) **float64 { return &c.FundingRounds }, few...),
	value("last_funding_date", func(c *scoring.CompanyFacts) *time.Time { return &c.LastFundingDate }),
	number("founders", func(c *scoring.CompanyFacts) **float64 { return &c.Founders }, few...),
	{
		name: "hiring_regions", grid: []float64{0, 1, 2, 3, 4, 5, 6},
		known:  func(c *scoring.CompanyFacts) bool { return c.HiringRegions != 0 },
		remove: func(c *scoring.CompanyFacts) { c.HiringRegions = 0 },
		raise:  func(c *scoring.CompanyFacts, v float64) { c.HiringRegions = int(v) },
	},
	{name: "listed", known: func(c *scoring.CompanyFacts) bool {
		return c.Listed != nil
	}, remove: func(c *scoring.CompanyFacts) { c.Listed = nil }},
}

// signalFact returns the column with raw values of a signal.
func signalFact(s scoring.Signal) fact {
	f := fact{
		name:  "signal:" + s.ID,
		known: func(c *scoring.CompanyFacts) bool { _, ok := c.Signals[s.ID]; return ok },
		remove: func(c *scoring.CompanyFacts) {
			c.Signals = maps.Clone(c.Signals)
			delete(c.Signals, s.ID)
		},
		raise: func(c *scoring.CompanyFacts, v float64) {
			c.Signals = maps.Clone(c.Signals)
			c.Signals[s.ID] = v
		},
	}
	for score := 0.0; score <= 100; score += 10 { // from the worst to the best value
		if raw := s.Curve.Raw(score); s.Range().Check(raw) == nil { // ends of a curve can be beyond its unit
			f.grid = append(f.grid, raw)
		}
	}
	return f
}

// allFacts are all columns that decide a score, the status apart.
var allFacts = func() []fact {
	all := slices.Clone(columnFacts)
	for _, s := range scoring.Manifest() {
		all = append(all, signalFact(s))
	}
	return all
}()

// knownFacts returns the known facts of a company, the status apart.
func knownFacts(c *scoring.CompanyFacts) []fact {
	var known []fact
	for _, f := range allFacts {
		if f.known(c) {
			known = append(known, f)
		}
	}
	return known
}

// factNamed returns the fact of a column. It returns false if the column decides no score.
func factNamed(column string) (fact, bool) {
	if column == status.name {
		return status, true
	}
	i := slices.IndexFunc(allFacts, func(f fact) bool { return f.name == column })
	if i < 0 {
		return fact{}, false
	}
	return allFacts[i], true
}

// alone returns a company of which nothing but one fact, and the day of the row, is known.
func (f fact) alone(c scoring.CompanyFacts) scoring.CompanyFacts {
	for _, other := range append(knownFacts(&c), status) {
		if other.name != f.name {
			other.remove(&c)
		}
	}
	return c
}

// score returns the record of a company from facts alone, as of now.
func score(company scoring.CompanyFacts, now time.Time, spreads *scoring.Spreads) scoring.Record {
	return scoreResult(company, fromFacts(company, now), now, spreads)
}

// fromFacts returns the observations of a company with one origin.
func fromFacts(company scoring.CompanyFacts, now time.Time) source.Result {
	return source.FromFacts([]scoring.CompanyFacts{company}, scoring.Preference{Now: now})
}

// scoreWithheld returns the record of a company without a fact. The signals that the fact decides
// alone are missing, even if others imply them: revenue stays unknown with market value over
// price/sales.
func scoreWithheld(company scoring.CompanyFacts, withheld fact, now time.Time) scoring.Record {
	decided := make(map[string]bool)
	for _, o := range fromFacts(withheld.alone(company), now).Observations {
		decided[o.Signal] = true
	}
	withheld.remove(&company)
	got := fromFacts(company, now)
	got.Observations = slices.DeleteFunc(got.Observations, func(o scoring.Observation) bool { return decided[o.Signal] })
	return scoreResult(company, got, now, nil)
}

func scoreResult(company scoring.CompanyFacts, got source.Result, now time.Time, spreads *scoring.Spreads) scoring.Record {
	in := scoring.Input{
		Domain: company.Domain, Now: now, Observations: got.Observations, Spreads: spreads, Answered: []string{scoring.FactsSource},
		Identity: source.NewCompany(got.Claims...).Identity(scoring.SiteText{}, company.HiringRegions),
	}
	if got.Defunct {
		in.Warnings = []scoring.Warning{{Source: scoring.FactsSource, Code: scoring.WarningDefunct, At: now}}
	}
	rec, err := scoring.Score(in)
	if err != nil {
		panic(fmt.Sprintf("score facts of %s: %v", company.Domain, err)) // facts name signals of the manifest only
	}
	return rec
}

// isSignal reports whether the fact is a raw value of a signal.
func isSignal(f fact) bool { return strings.HasPrefix(f.name, "signal:") }
