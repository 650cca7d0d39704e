package source

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"companyscore/scoring"
)

// FactStore stores imported facts.
type FactStore interface {
	// Get returns the facts of a company, or scoring.ErrNotFound if there are none.
	Get(ctx context.Context, domain string) (scoring.CompanyFacts, error)
	// GetMany returns the facts of companies by domain. Companies without facts are left out.
	GetMany(ctx context.Context, domains []string) (map[string]scoring.CompanyFacts, error)
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
	facts, err := f.Store.Get(ctx, req.Domain)
	if errors.Is(err, scoring.ErrNotFound) {
		return Result{}, nil
	}
	if err != nil {
		return Result{}, fmt.Errorf("read facts: %w: %w", ErrUnavailable, err)
	}
	return FromFacts(facts, req.Now), nil
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
		if facts, ok := found[req.Domain]; ok {
			results[i] = FromFacts(facts, req.Now)
		}
	}
	return results, nil
}

// moneyAgeMax is the age beyond which a headcount or an amount is not used.
const moneyAgeMax = 6 * 365 * 24 * time.Hour

// FromFacts converts imported facts to observations, as of now. It derives these signals:
//
//   - employee_count, revenue_latest_usd and total_assets_usd are copied, unless the row is
//     older than six years;
//   - net_margin is price/sales over price/earnings, if both are positive;
//   - organization_age_years counts from the middle of the founding year;
//   - public_listing is the imported value, else true if there is a market capitalisation
//     or a price ratio, which only traded shares have, else missing.
//
// A value imported for a signal's own id replaces a derived one.
func FromFacts(facts scoring.CompanyFacts, now time.Time) Result {
	raw := make(map[string]float64)
	if facts.AsOf.IsZero() || now.Sub(facts.AsOf) <= moneyAgeMax {
		set := func(id string, v *float64) {
			if v != nil && *v >= 0 {
				raw[id] = *v
			}
		}
		set("employee_count", facts.Employees)
		set("revenue_latest_usd", facts.RevenueUSD)
		set("total_assets_usd", facts.TotalAssetsUSD)
		if ps, pe := facts.PriceSales, facts.PERatio; ps != nil && pe != nil && *ps > 0 && *pe > 0 {
			raw["net_margin"] = *ps / *pe
		}
	}
	if facts.FoundedYear > 0 {
		founded := time.Date(facts.FoundedYear, time.July, 1, 0, 0, 0, 0, time.UTC)
		raw["organization_age_years"] = math.Max(0, now.Sub(founded).Hours()/(24*365.25))
	}
	switch {
	case facts.Listed != nil && *facts.Listed:
		raw["public_listing"] = 1
	case facts.Listed != nil:
		raw["public_listing"] = 0
	case facts.MarketCapUSD != nil, facts.PERatio != nil, facts.PriceSales != nil, facts.PriceBook != nil:
		raw["public_listing"] = 1
	}
	for id, v := range facts.Signals {
		raw[id] = v
	}
	result := Result{Claims: claims(facts)}
	if facts.HiringRegions > 0 {
		result.Values = map[string]float64{ValueHiringRegions: float64(facts.HiringRegions)}
	}
	for id, v := range raw {
		result.Observations = append(result.Observations, scoring.Observation{
			Signal: id, State: scoring.StateOK, Raw: v, Source: scoring.FactsSource,
		})
	}
	slices.SortFunc(result.Observations, func(a, b scoring.Observation) int { return strings.Compare(a.Signal, b.Signal) })
	return result
}

// claims returns the identity claims in facts.
func claims(facts scoring.CompanyFacts) []Claim {
	evidence := "imported"
	if facts.Source != "" {
		evidence += " from " + facts.Source
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
	return all
}

// industries returns the industry labels of a company, the industry first, each followed by its
// singular: sectors list "Commercial Bank", not "Commercial Banks".
func industries(facts scoring.CompanyFacts) []string {
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
