package source_test

import (
	"encoding/csv"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"companyscore/scoring"
	"companyscore/scoring/source"
)

var update = flag.Bool("update", false, "write golden files instead of comparing with them")

// countries are the codes of the country names in the sample.
var countries = map[string]string{"Canada": "CA", "Germany": "DE", "Hong Kong": "HK", "United Kingdom": "GB"}

// examples reads the real companies that ship with the project.
func examples(t *testing.T) []scoring.CompanyFacts {
	t.Helper()
	f, err := os.Open("../../examples/companies.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var all []scoring.CompanyFacts
	for _, row := range rows[1:] {
		cell := make(map[string]string, len(row))
		for i, name := range rows[0] {
			cell[name] = row[i]
		}
		number := func(name string) *float64 {
			if cell[name] == "" {
				return nil
			}
			v, err := strconv.ParseFloat(cell[name], 64)
			if err != nil {
				t.Fatal(err)
			}
			return &v
		}
		facts := scoring.CompanyFacts{
			Domain: cell["domain"], CompanyName: cell["company_name"], Industry: cell["industry"],
			Employees: number("employees"), RevenueUSD: number("revenue_usd"), MarketCapUSD: number("market_cap_usd"),
			PERatio: number("pe_ratio"), PriceSales: number("price_sales"), PriceBook: number("price_book"),
		}
		facts.Country = cell["country"]
		if code, ok := countries[facts.Country]; ok {
			facts.Country = code
		}
		if cell["categories"] != "" {
			facts.Categories = strings.Split(cell["categories"], "|")
		}
		if year := number("founded_year"); year != nil {
			facts.FoundedYear = int(*year)
		}
		if facts.AsOf, err = time.Parse(time.DateOnly, cell["as_of"]); err != nil {
			t.Fatal(err)
		}
		all = append(all, facts)
	}
	return all
}

func score(t *testing.T, facts scoring.CompanyFacts) scoring.Record {
	t.Helper()
	result := source.FromFacts(facts, now)
	rec, err := scoring.Score(scoring.Input{Domain: facts.Domain, Now: now, Observations: result.Observations, Identity: source.NewCompany(result.Claims...).Identity(result.Site, int(result.Values[source.ValueHiringRegions]))})
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// sample is a mixture of large listed, large unlisted and young companies.
var sample = map[string]bool{
	"apple.com": true, "amazon.com": true, "walmart.com": true, "nvidia.com": true, "jnj.com": true, "jpmorganchase.com": true,
	"oracle.com": true, "caterpillar.com": true, "zoetis.com": true, "zimmerbiomet.com": true, "publix.com": true, "statefarm.com": true,
	"ford.com": true, "boeing.com": true, "att.com": true, "exxonmobil.com": true, "airbnb.com": true, "gocardless.com": true,
	"stripe.com": true, "140fire.com": true, "1000memories.com": true, "zapier.com": true, "zidisha.org": true, "zowpow.com": true,
	"picnichealth.com": true, "280north.com": true, "heroku.com": true, "reddit.com": true, "weebly.com": true, "scribd.com": true,
	"reebee.com": true, "swishme.com": true, "directededge.com": true,
}

func TestScoresOfRealCompanies(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	found := 0
	for _, facts := range examples(t) {
		if !sample[facts.Domain] {
			continue
		}
		found++
		r := score(t, facts)
		fmt.Fprintf(&b, "%-18s %5.1f %-6s base %7.4f premium %4.1f %-12s %-24s %-13s complete %4.1f %s\n", r.Domain, r.Composite, r.Rating,
			r.Base, r.ScalePremium, r.Profile, r.Sector, r.GeoScope, r.CompletenessPct, r.Confidence)
	}
	if found != len(sample) {
		t.Errorf("%d of the %d companies of the sample are in the file", found, len(sample))
	}
	path := "testdata/companies.golden"
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("scores changed (-golden +now):\n%s", diff)
	}
}

func TestLargeProfitableCompaniesOutscoreStartups(t *testing.T) {
	t.Parallel()
	lowestLarge, highestSmall := scoring.Record{Composite: 101}, scoring.Record{}
	for _, facts := range examples(t) {
		r := score(t, facts)
		switch {
		case facts.RevenueUSD == nil:
			if r.Composite > highestSmall.Composite {
				highestSmall = r
			}
		case *facts.RevenueUSD > 1e10 && facts.PERatio != nil && *facts.PERatio > 0:
			if r.Composite < lowestLarge.Composite {
				lowestLarge = r
			}
		}
		if r.CompletenessPct > 15 || r.Confidence != scoring.BandDirectional {
			t.Errorf("%s claims %v %% completeness and %s confidence from so few facts", r.Domain, r.CompletenessPct, r.Confidence)
		}
		if facts.RevenueUSD == nil && r.ScalePremium != 0 {
			t.Errorf("%s earns a premium of %v without any sign of scale", r.Domain, r.ScalePremium)
		}
	}
	if lowestLarge.Composite <= highestSmall.Composite {
		t.Errorf("%s (%v) stands above %s (%v)", highestSmall.Domain, highestSmall.Composite, lowestLarge.Domain, lowestLarge.Composite)
	}
}
