package source_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"companyscore/scoring"
	"companyscore/scoring/source"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func ptr[T any](v T) *T { return &v }

// fromFacts returns what a company with one layer is known by.
func fromFacts(layer scoring.CompanyFacts) source.Result {
	return source.FromFacts([]scoring.CompanyFacts{layer}, scoring.Preference{Now: now})
}

func TestFromFacts(t *testing.T) {
	t.Parallel()
	f := func(name string, facts scoring.CompanyFacts, want map[string]float64) {
		t.Helper()
		got := map[string]float64{}
		for _, o := range fromFacts(facts).Observations {
			if o.State != scoring.StateOK || o.Source != "facts" {
				t.Errorf("%s: %+v is not a fact", name, o)
			}
			if _, ok := scoring.Lookup(o.Signal); !ok {
				t.Errorf("%s: %q is no signal", name, o.Signal)
			}
			got[o.Signal] = o.Raw
		}
		if len(got) != len(want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
		for id, w := range want {
			if math.Abs(got[id]-w) > 1e-6 {
				t.Errorf("%s: %s = %v, want %v", name, id, got[id], w)
			}
		}
	}
	f("nothing known", scoring.CompanyFacts{}, nil)
	f("amounts as they are", scoring.CompanyFacts{Employees: ptr(120.0), RevenueUSD: ptr(5e7), TotalAssetsUSD: ptr(9e6)},
		map[string]float64{"employee_count": 120, "revenue_latest_usd": 5e7, "total_assets_usd": 9e6})
	f("margin from price ratios", scoring.CompanyFacts{PriceSales: ptr(3.0), PERatio: ptr(20.0)},
		map[string]float64{"net_margin": 0.15, "public_listing": 1})
	f("margin of a loss", scoring.CompanyFacts{PriceSales: ptr(3.0), PERatio: ptr(-20.0)},
		map[string]float64{"net_margin": -0.15, "public_listing": 1})
	f("no margin without sales", scoring.CompanyFacts{PriceSales: ptr(0.0), PERatio: ptr(20.0)}, map[string]float64{"public_listing": 1})
	f("a market capitalisation means listed", scoring.CompanyFacts{MarketCapUSD: ptr(1e9)},
		map[string]float64{"market_value_usd": 1e9, "public_listing": 1})
	f("said to be unlisted", scoring.CompanyFacts{MarketCapUSD: ptr(1e9), Listed: ptr(false)},
		map[string]float64{"market_value_usd": 1e9, "public_listing": 0})
	f("revenue from price over sales", scoring.CompanyFacts{MarketCapUSD: ptr(1e9), PriceSales: ptr(4.0)},
		map[string]float64{"market_value_usd": 1e9, "revenue_latest_usd": 2.5e8, "public_listing": 1})
	f("a revenue wins over price over sales", scoring.CompanyFacts{MarketCapUSD: ptr(1e9), PriceSales: ptr(4.0), RevenueUSD: ptr(2e8)},
		map[string]float64{"market_value_usd": 1e9, "revenue_latest_usd": 2e8, "public_listing": 1})
	f("assets from price over book", scoring.CompanyFacts{MarketCapUSD: ptr(1e9), PriceBook: ptr(2.0)},
		map[string]float64{"market_value_usd": 1e9, "total_assets_usd": 5e8, "public_listing": 1})
	f("no assets from a negative book value", scoring.CompanyFacts{MarketCapUSD: ptr(1e9), PriceBook: ptr(-2.0)},
		map[string]float64{"market_value_usd": 1e9, "public_listing": 1})
	f("class of market value", scoring.CompanyFacts{MarketCapClass: "small"},
		map[string]float64{"market_value_usd": math.Sqrt(3e8 * 2e9), "public_listing": 1})
	f("a market value wins over its class", scoring.CompanyFacts{MarketCapClass: "small", MarketCapUSD: ptr(1e9)},
		map[string]float64{"market_value_usd": 1e9, "public_listing": 1})
	f("EBITDA without a revenue", scoring.CompanyFacts{EBITDAUSD: ptr(1e6)}, nil)
	f("margin below that of EBITDA", scoring.CompanyFacts{EBITDAUSD: ptr(3e7), RevenueUSD: ptr(1e8)},
		map[string]float64{"operating_margin": 0.25, "revenue_latest_usd": 1e8})
	f("a loss before depreciation", scoring.CompanyFacts{EBITDAUSD: ptr(-1e8), RevenueUSD: ptr(1e8)},
		map[string]float64{"operating_margin": -1.05, "revenue_latest_usd": 1e8})
	f("age from the middle of the year", scoring.CompanyFacts{FoundedYear: 2015, AsOf: now.AddDate(-11, 0, 0)},
		map[string]float64{"organization_age_years": now.Sub(time.Date(2015, 7, 1, 0, 0, 0, 0, time.UTC)).Hours() / (24 * 365.25)})
	f("founded in the future", scoring.CompanyFacts{FoundedYear: 2030}, map[string]float64{"organization_age_years": 0})
	f("a raw value wins", scoring.CompanyFacts{Employees: ptr(120.0), Signals: map[string]float64{"employee_count": 7, "open_roles": 3}},
		map[string]float64{"employee_count": 7, "open_roles": 3})
	f("funding and founders", scoring.CompanyFacts{FundingTotalUSD: ptr(1e6), FundingRounds: ptr(2.0), Founders: ptr(3.0),
		LastFundingDate: now.AddDate(0, 0, -90)},
		map[string]float64{"funding_total_usd": 1e6, "funding_rounds": 2, "leadership_disclosure": 3, "capital_raise_recency_days": 90})
	f("values outside their unit", scoring.CompanyFacts{
		PriceSales: ptr(1e-300), PERatio: ptr(1e-320), MarketCapUSD: ptr(1e9), Employees: ptr(1e308),
		Signals: map[string]float64{"team_page_present": 17, "technical_role_share": 1e308, "email_auth_maturity": 5},
	}, map[string]float64{"market_value_usd": 1e9, "public_listing": 1, "email_auth_maturity": 5})
	f("many founders", scoring.CompanyFacts{Founders: ptr(9.0)}, map[string]float64{"leadership_disclosure": 6})
}

// A class of market value and a margin bound by EBITDA are ranges.
func TestFactsAreRanges(t *testing.T) {
	t.Parallel()
	f := func(facts scoring.CompanyFacts, signal string, low, high float64) {
		t.Helper()
		for _, o := range fromFacts(facts).Observations {
			if o.Signal == signal && math.Abs(o.Low-low) < 1e-9 && math.Abs(o.High-high) < 1e-9 && o.Low < o.Raw && o.Raw < o.High {
				return
			}
		}
		t.Errorf("%s is not from %v to %v: %+v", signal, low, high, fromFacts(facts).Observations)
	}
	f(scoring.CompanyFacts{MarketCapClass: "small"}, "market_value_usd", 3e8, 2e9)
	f(scoring.CompanyFacts{EBITDAUSD: ptr(3e7), RevenueUSD: ptr(1e8)}, "operating_margin", 0.2, 0.3)
	width := func(facts scoring.CompanyFacts) float64 {
		rec := score(t, facts)
		return rec.Interval.High - rec.Interval.Low
	}
	if class, exact := width(scoring.CompanyFacts{Domain: "a.com", MarketCapClass: "mega"}),
		width(scoring.CompanyFacts{Domain: "a.com", MarketCapUSD: ptr(scoring.MarketCapClasses["mega"].Middle())}); class < exact {
		t.Errorf("interval of a class is %v wide, that of the amount %v", class, exact)
	}
}

func TestStatusMakesDefunct(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]bool{
		"": false, "operating": false, "exited": false, "delisted": false, "dead": true, " Dead ": true, "dissolved": true,
		"Shut down": true, "parked": true,
	} {
		if got := fromFacts(scoring.CompanyFacts{Status: status}).Defunct; got != want {
			t.Errorf("status %q: defunct %v", status, got)
		}
	}
}

type store struct {
	layers []scoring.CompanyFacts
	err    error
}

func (s store) Get(context.Context, string) ([]scoring.CompanyFacts, error) { return s.layers, s.err }

func (s store) GetMany(_ context.Context, domains []string) (map[string][]scoring.CompanyFacts, error) {
	found := make(map[string][]scoring.CompanyFacts)
	for _, domain := range domains {
		if domain != "unknown.com" {
			found[domain] = s.layers
		}
	}
	return found, s.err
}

func TestFactsOfGroupEqualSingleFacts(t *testing.T) {
	t.Parallel()
	five := 5.0
	facts := source.Facts{Store: store{layers: []scoring.CompanyFacts{{CompanyName: "Example", Country: "US", Employees: &five,
		FoundedYear: 2001}}}}
	reqs := []source.Request{{Domain: "a.com", Now: now}, {Domain: "unknown.com", Now: now}, {Domain: "b.com", Now: now.AddDate(3, 0, 0)}}
	results, err := facts.FetchGroup(t.Context(), reqs)
	if err != nil || len(results) != len(reqs) {
		t.Fatalf("FetchGroup = %d results, %v; want %d", len(results), err, len(reqs))
	}
	for i, req := range reqs {
		want, err := facts.Fetch(t.Context(), req)
		if req.Domain == "unknown.com" {
			want = source.Result{}
		}
		if diff := cmp.Diff(want, results[i], cmp.AllowUnexported(source.Result{})); diff != "" || err != nil {
			t.Errorf("facts of %s in a group differ (%v):\n%s", req.Domain, err, diff)
		}
	}
	if _, err := (source.Facts{Store: store{err: errors.New("boom")}}).FetchGroup(t.Context(), reqs); !errors.Is(err,
		source.ErrUnavailable) {
		t.Errorf("store broken: %v does not wrap ErrUnavailable", err)
	}
}

func TestFactsFetch(t *testing.T) {
	t.Parallel()
	req := source.Request{Domain: "example.com", Now: now}
	got, err := source.Facts{Store: store{}}.Fetch(t.Context(), req)
	if err != nil || len(got.Observations) != 0 {
		t.Errorf("unknown company: %+v, %v; want nothing and no error", got, err)
	}
	_, err = source.Facts{Store: store{err: errors.New("boom")}}.Fetch(t.Context(), req)
	if !errors.Is(err, source.ErrUnavailable) {
		t.Errorf("store broken: %v does not wrap ErrUnavailable", err)
	}
	identity := func(r source.Result) scoring.Identity {
		return source.NewCompany(r.Claims...).Identity(r.Site, int(r.Values[source.ValueHiringRegions]))
	}
	plural := identity(fromFacts(scoring.CompanyFacts{Industry: "Commercial Banks", Categories: []string{"Fitness"}}))
	if want := []string{"Commercial Banks", "Commercial Bank", "Fitness"}; !slices.Equal(plural.Industries, want) {
		t.Errorf("labels = %q, want %q", plural.Industries, want)
	}
	got, err = source.Facts{Store: store{layers: []scoring.CompanyFacts{{CompanyName: "Example", Country: "US", Industry: "Retail",
		Categories: []string{"Shop"}}}}}.Fetch(t.Context(), req)
	if id := identity(got); err != nil || id.Name != "Example" || id.Country != "US" ||
		!slices.Equal(id.Industries, []string{"Retail", "Shop"}) {
		t.Errorf("identity = %+v, %v", id, err)
	}
}

func TestWarningCode(t *testing.T) {
	t.Parallel()
	f := func(err error, want string) {
		t.Helper()
		if got := source.WarningCode(err); got != want {
			t.Errorf("WarningCode(%v) = %q, want %q", err, got, want)
		}
	}
	f(fmt.Errorf("x: %w", context.DeadlineExceeded), "timeout")
	f(fmt.Errorf("x: %w", &source.Error{Code: "too_large", Err: errors.New("y")}), "too_large")
	f(errors.New("x"), "internal_error")
}
