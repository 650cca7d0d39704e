package source_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"companyscore/facts"
	"companyscore/internal/test/golden"
	"companyscore/scoring"
	"companyscore/scoring/source"
)

// examples reads the real companies that ship with the project.
func examples(t *testing.T) (all []scoring.CompanyFacts) {
	t.Helper()
	file, err := facts.Open("../../examples/companies.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for {
		company, err := file.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, company)
	}
}

// score returns the record of facts alone.
func score(t *testing.T, facts scoring.CompanyFacts) scoring.Record {
	t.Helper()
	result := fromFacts(facts)
	in := scoring.Input{
		Domain: facts.Domain, Now: now, Observations: result.Observations, Answered: []string{scoring.FactsSource},
		Identity: source.NewCompany(result.Claims...).Identity(result.Site, int(result.Values[source.ValueHiringRegions])),
	}
	if result.Defunct {
		in.Warnings = []scoring.Warning{{Source: scoring.FactsSource, Code: scoring.WarningDefunct, At: now}}
	}
	rec, err := scoring.Score(in)
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
		fmt.Fprintf(&b, "%-18s %5.1f of %4.1f to %4.1f %-6s base %7.4f premium %4.1f %-12s %-24s %-13s complete %4.1f %s\n", r.Domain,
			r.Composite,
			r.Interval.Low, r.Interval.High, r.Rating, r.Base, r.ScalePremium, r.Profile, r.Sector, r.GeoScope, r.CompletenessPct,
			r.Confidence)
	}
	if found != len(sample) {
		t.Errorf("%d of the %d companies of the sample are in the file", found, len(sample))
	}
	golden.Compare(t, "testdata/companies.golden", b.String())
}

func TestSectorsOfRealCompanies(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"caterpillar.com": "industrials", "gm.com": "industrials", "ford.com": "industrials", "tesla.com": "industrials",
		"thekrogerco.com": "ecommerce_retail", "statefarm.com": "financial_services", "jpmorganchase.com": "financial_services",
	}
	all := examples(t)
	unknown := 0
	for _, facts := range all {
		got := score(t, facts).Sector
		if got == scoring.Unknown {
			unknown++
		}
		if strings.HasPrefix(facts.Industry, "Insurance: Life") && got != "financial_services" {
			t.Errorf("the life insurer %s is in %s", facts.Domain, got)
		}
		if sector, listed := want[facts.Domain]; listed {
			if delete(want, facts.Domain); got != sector {
				t.Errorf("%s is in %s, want %s", facts.Domain, got, sector)
			}
		}
	}
	for domain := range want {
		t.Errorf("%s is not in the file", domain)
	}
	if 20*unknown > len(all) {
		t.Errorf("%d of %d companies have no sector", unknown, len(all))
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
		if r.CompletenessPct > 20 || r.Confidence != scoring.BandDirectional {
			t.Errorf("%s has %v %% completeness and %s confidence from so few facts", r.Domain, r.CompletenessPct, r.Confidence)
		}
		if facts.RevenueUSD == nil && facts.FundingTotalUSD == nil && r.ScalePremium != 0 {
			t.Errorf("%s has a premium of %v without any measure of scale", r.Domain, r.ScalePremium)
		}
		if dead := facts.Status == "dead"; dead != (r.Rating == scoring.Rating5 && r.Composite <= scoring.DefunctMax) {
			t.Errorf("%s is %s and scores %v", r.Domain, facts.Status, r.Composite)
		}
	}
	if lowestLarge.Composite <= highestSmall.Composite {
		t.Errorf("%s (%v) is above %s (%v)", highestSmall.Domain, highestSmall.Composite, lowestLarge.Domain, lowestLarge.Composite)
	}
}
