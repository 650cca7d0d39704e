package source

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"companyscore/scoring"
)

// FactStore stores imported facts.
type FactStore interface {
	// Get returns the facts of a company, one layer per origin, in any order.
	Get(ctx context.Context, domain string) ([]scoring.CompanyFacts, error)
	// GetMany returns the facts of companies by domain. Companies without facts are left out.
	GetMany(ctx context.Context, domains []string) (map[string][]scoring.CompanyFacts, error)
}

// Facts is the source of imported facts.
type Facts struct{ Store FactStore }

var _ GroupSource = Facts{}

// Name returns the key of the source.
func (Facts) Name() string { return scoring.FactsSource }

// Plan starts the facts at once, with the default deadline.
func (Facts) Plan() Plan { return Plan{} }

// Fetch returns the imported facts of a company as observations. Its errors wrap ErrUnavailable.
func (f Facts) Fetch(ctx context.Context, req Request) (Result, error) {
	layers, err := f.Store.Get(ctx, req.Domain)
	if err != nil {
		return Result{}, fmt.Errorf("read facts: %w: %w", ErrUnavailable, err)
	}
	return FromFacts(layers, req.Preference()), nil
}

// FetchGroup returns the imported facts of companies as observations. Its errors wrap
// ErrUnavailable.
func (f Facts) FetchGroup(ctx context.Context, reqs []Request) ([]Result, error) {
	domains := make([]string, len(reqs))
	for i, req := range reqs {
		domains[i] = req.Domain
	}
	found, err := f.Store.GetMany(ctx, domains)
	if err != nil {
		return nil, fmt.Errorf("read facts: %w: %w", ErrUnavailable, err)
	}
	results := make([]Result, len(reqs))
	for i, req := range reqs {
		results[i] = FromFacts(found[req.Domain], req.Preference())
	}
	return results, nil
}

// FromFacts converts the layers of a company's facts to observations, one for each value of each
// layer. Score chooses among them. It derives these signals within a layer:
//
//   - employee_count, revenue_latest_usd, total_assets_usd and market_value_usd are copied;
//   - without them, revenue is market value over price/sales, total assets are at least market
//     value over price/book, and market value is the middle of its class;
//   - net_margin is price/sales over price/earnings, and negative if the latter is;
//   - operating_margin is at most EBITDA over revenue: it is taken as that less depreciation;
//   - organization_age_years counts from the middle of the founding year;
//   - public_listing is the imported value, else true if there is a market value or a price ratio,
//     which only traded shares have, else missing;
//   - funding_total_usd and funding_rounds are copied, capital_raise_recency_days counts from the
//     last round, and leadership_disclosure is the number of founders, at most 6.
//
// A lower bound is a range up to the best value of the signal's curve. Values outside the unit of
// their signal, such as a margin from a tiny divisor, are left out. A value imported for a signal's
// own id replaces a derived one. Of status and hiring regions the layer counts that comes first by
// CompareLayers; a status such as dead makes the company defunct. Claims come in that order.
func FromFacts(layers []scoring.CompanyFacts, prefer scoring.Preference) Result {
	var result Result
	layers = slices.SortedFunc(slices.Values(layers), prefer.CompareLayers)
	status := ""
	for i := range layers {
		layer := &layers[i]
		result.Claims = append(result.Claims, claims(layer)...)
		result.Observations = append(result.Observations, observe(layer, prefer.Now)...)
		if status = cmp.Or(status, layer.Status); layer.HiringRegions > 0 && result.Values == nil {
			result.Values = map[string]float64{ValueHiringRegions: float64(layer.HiringRegions)}
		}
	}
	result.Defunct = defunct(status)
	return result
}

// observe returns the observations of one layer by signal.
func observe(layer *scoring.CompanyFacts, now time.Time) []scoring.Observation {
	derived := derive(layer, now)
	for id, v := range layer.Signals {
		derived[id] = bounded(layer, "signal:"+id, id, v)
	}
	all := make([]scoring.Observation, 0, len(derived))
	for _, id := range slices.Sorted(maps.Keys(derived)) {
		o := derived[id]
		if s, known := scoring.Lookup(id); known && s.Range().Check(o.Raw) != nil {
			continue
		}
		o.Signal, o.State, o.Source, o.Origin, o.At = id, scoring.StateOK, scoring.FactsSource, layer.Origin, layer.AsOf
		all = append(all, o)
	}
	return all
}

// bounded returns the observation of a value in a column, a range if the value is a lower bound.
func bounded(layer *scoring.CompanyFacts, column, signal string, v float64) scoring.Observation {
	o := scoring.Observation{Raw: v}
	if s, known := scoring.Lookup(signal); known && slices.Contains(layer.AtLeast, column) {
		if most := max(s.Curve.Raw(0), s.Curve.Raw(100)); most > v {
			o.Low, o.High = v, most
		}
	}
	return o
}

// derive returns the observations in the columns of a layer by signal id.
func derive(facts *scoring.CompanyFacts, now time.Time) map[string]scoring.Observation {
	observed := make(map[string]scoring.Observation)
	set := func(id, column string, v *float64) {
		if v != nil {
			observed[id] = bounded(facts, column, id, *v)
		}
	}
	set("employee_count", "employees", facts.Employees)
	set("revenue_latest_usd", "revenue_usd", facts.RevenueUSD)
	set("total_assets_usd", "total_assets_usd", facts.TotalAssetsUSD)
	value, revenue := facts.MarketCapUSD, facts.RevenueUSD
	set("market_value_usd", "market_cap_usd", value)
	if class, ok := scoring.MarketCapClasses[facts.MarketCapClass]; ok && value == nil {
		observed["market_value_usd"] = scoring.Observation{Raw: class.Middle(), Low: class.From, High: class.To}
	}
	if revenue == nil {
		revenue = ratio(value, facts.PriceSales)
		set("revenue_latest_usd", "market_cap_usd", revenue)
	}
	if facts.TotalAssetsUSD == nil {
		set("total_assets_usd", "market_cap_usd", ratio(value, facts.PriceBook))
	}
	if ps, pe := facts.PriceSales, facts.PERatio; ps != nil && pe != nil && *ps > 0 && *pe != 0 {
		observed["net_margin"] = scoring.Observation{Raw: *ps / *pe}
	}
	if bound := ratio(facts.EBITDAUSD, revenue); bound != nil {
		observed["operating_margin"] = scoring.Observation{Raw: *bound - depreciation, Low: *bound - 2*depreciation, High: *bound}
	}
	if facts.FoundedYear > 0 {
		founded := time.Date(facts.FoundedYear, time.July, 1, 0, 0, 0, 0, time.UTC)
		observed["organization_age_years"] = scoring.Observation{Raw: math.Max(0, now.Sub(founded).Hours()/(24*365.25))}
	}
	set("funding_total_usd", "funding_total_usd", facts.FundingTotalUSD)
	set("funding_rounds", "funding_rounds", facts.FundingRounds)
	if !facts.LastFundingDate.IsZero() {
		observed["capital_raise_recency_days"] = scoring.Observation{Raw: math.Max(0, now.Sub(facts.LastFundingDate).Hours()/24)}
	}
	if facts.Founders != nil {
		observed["leadership_disclosure"] = scoring.Observation{Raw: min(*facts.Founders, 6)}
	}
	switch {
	case facts.Listed != nil && *facts.Listed:
		observed["public_listing"] = scoring.Observation{Raw: 1}
	case facts.Listed != nil:
		observed["public_listing"] = scoring.Observation{Raw: 0}
	case facts.MarketCapUSD != nil, facts.MarketCapClass != "", facts.PERatio != nil, facts.PriceSales != nil, facts.PriceBook != nil:
		observed["public_listing"] = scoring.Observation{Raw: 1}
	}
	return observed
}

// depreciation is the typical difference of EBITDA and operating income, as a share of revenue: the
// middle of the sectors in A. Damodaran's tables of January 2025, rounded.
const depreciation = 0.05

// ratio returns a over b, nil unless both are known and b is positive.
func ratio(a, b *float64) *float64 {
	if a == nil || b == nil || *b <= 0 {
		return nil
	}
	r := *a / *b
	return &r
}

// defunctStatuses are the values of the column status for a company that is no more. An exited
// company was bought or listed and may be well.
var defunctStatuses = []string{"dead", "defunct", "dissolved", "closed", "inactive", "bankrupt", "liquidated", "shut down", "parked"}

func defunct(status string) bool {
	return slices.Contains(defunctStatuses, strings.ToLower(strings.TrimSpace(status)))
}

// claims returns the identity claims of a layer.
func claims(facts *scoring.CompanyFacts) []Claim {
	evidence := "imported"
	if facts.Origin != "" {
		evidence += " from " + facts.Origin
	}
	if !facts.AsOf.IsZero() {
		evidence += ", as of " + facts.AsOf.Format(time.DateOnly)
	}
	var all []Claim
	claim := func(kind Kind, value string) {
		if value != "" {
			all = append(all, Claim{Kind: kind, Value: value, Source: scoring.FactsSource, Evidence: evidence})
		}
	}
	claim(Name, facts.CompanyName)
	claim(Country, facts.Country)
	for _, label := range industries(facts) {
		claim(Industry, label)
	}
	if facts.SIC > 0 {
		claim(SIC, fmt.Sprintf("%04d", facts.SIC))
	}
	claim(Ticker, facts.Ticker)
	claim(CIK, facts.CIK)
	claim(LEI, facts.LEI)
	claim(GitHub, facts.GitHub)
	claim(QID, facts.Wikidata)
	return all
}

// industries returns the industry labels of a company, the industry first, each followed by its
// singular: sectors list "Commercial Bank", not "Commercial Banks".
func industries(facts *scoring.CompanyFacts) []string {
	var labels []string
	for _, label := range append([]string{facts.Industry}, facts.Categories...) {
		if label == "" {
			continue
		}
		labels = append(labels, label)
		if one := singular(label); one != label {
			labels = append(labels, one)
		}
	}
	return labels
}

// singular removes the plural s of each word of an English label.
func singular(label string) string {
	words := strings.Fields(label)
	for i, word := range words {
		bare := strings.TrimRight(word, ",:;")
		if len(bare) > 3 && strings.HasSuffix(bare, "s") && !strings.HasSuffix(bare, "ss") {
			words[i] = bare[:len(bare)-1] + word[len(bare):]
		}
	}
	return strings.Join(words, " ")
}
