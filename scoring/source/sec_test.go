package source

import (
	"strings"
	"testing"
	"time"

	"companyscore/internal/test/fakenet"
)

func TestSECRejectsBadAnswers(t *testing.T) {
	t.Parallel()
	good := concepts(map[string][]obj{"Revenues": yearsOf(5)})
	for _, body := range []string{"", "{}", "[]", "<html>", good[:len(good)-30], `{"facts":[]}`,
		`{"facts":{"us-gaap":{"Revenues":{"units":{"USD":[{"end":"soon","form":"10-K"}]}}}}}`, strings.Repeat(`{"facts":`, 100),
		`{"facts":{"us-gaap":{"Revenues":{"units":{"USD":"x"}}}}}`} {
		if got, err := parseSECFacts(strings.NewReader(body)); err == nil {
			t.Errorf("facts in %.60q: %v", body, got)
		}
	}
	for _, body := range []string{"", "{}", "null", `{"name":"X"}`, `{"name":"X","filings":{"recent":{"form":["10-K"],"filingDate":[]}}}`,
		`{"name":"X","filings":{"recent":{"form":["10-K"],"filingDate":["soon"]}}}`} {
		if got, err := parseFiler(strings.NewReader(body)); err == nil {
			t.Errorf("a filer in %.60q: %v", body, got)
		}
	}
	for _, body := range []string{"", "{}", "[]", `{"0":{"cik_str":"x"}}`, `{"0":{"cik_str":1,"ticker":"A","title":"B"`} {
		if got, err := parseFilers(strings.NewReader(body)); err == nil {
			t.Errorf("filers in %.60q: %v", body, got)
		}
	}
}

func TestSECResolve(t *testing.T) {
	t.Parallel()
	s := NewSEC(nil)
	s.filers = newFilerIndex([]filer{{"1", "QLWK", "QUILLWORKS CORP"}, {"1", "QLWKP", "QUILLWORKS CORP"}, {"2", "TWIN", "Twin Works Inc"},
		{"3", "TWIM", "Twin Works Ltd"}, {"4", "BRND", "Brindle Works, Inc."}, {"5", "BRW-A", "BRINDLE COM INC"}, {"6", "NBM",
			"NORTHERN BREAD MACHINES CORP"},
		{"7", "OVN", "OVEN WORLD LTD"}})
	s.read = time.Now()
	f := func(name string, company Company, cik, via string) {
		t.Helper()
		gotCIK, gotVia, err := s.resolve(t.Context(), company)
		if err != nil || gotCIK != cik || gotVia != via {
			t.Errorf("%s: %q by %q, %v; want %q by %q", name, gotCIK, gotVia, err, cik, via)
		}
	}
	known := func(pairs ...string) Company {
		var all []Claim
		for i := 0; i+1 < len(pairs); i += 2 {
			all = append(all, Claim{Kind: Kind(pairs[i]), Value: pairs[i+1], Source: "wikidata"})
		}
		return NewCompany(all...)
	}
	f("nothing known", known(), "", "")
	f("by key", known("cik", "77", "name", "Brindle Works"), "77", "key")
	f("a key that is none", known("cik", "77/../x", "name", "Nobody At All"), "", "")
	f("by a name of two words", known("name", "Brindle Works"), "4", "name")
	f("by the legal name", known("name", "Brindle", "legal_name", "Brindle Works Incorporated"), "4", "name")
	f("a name that two have", known("name", "Twin Works"), "", "")
	f("which of the two the ticker tells", known("name", "Twin Works", "ticker", "TWIM"), "3", "key")
	f("a ticker of another company", known("name", "Nobody At All", "ticker", "QLWK"), "", "")
	f("a ticker and the first word", known("name", "Brindle", "ticker", "BRW.A"), "5", "key")
	f("a ticker and the first word of the legal name", known("name", "Hotbuns", "legal_name", "Brindle Buns AG", "ticker", "BRND"), "4",
		"key")
	f("a ticker and initials", known("name", "NBM", "ticker", "NBM"), "6", "key")
	f("a ticker and spaces", known("name", "OvenWorld", "ticker", "OVN"), "7", "key")
	f("a ticker and part of the first word", known("name", "Brind Works", "ticker", "BRND"), "", "")
	f("the first word without a ticker", known("name", "Brindle", "country", "US"), "", "")
	f("a name without words", known("name", "!", "ticker", "BRND"), "", "")
	f("a name of one word without a country", known("name", "Quillworks"), "", "")
	f("a name of one word, to be checked by country", known("name", "Quillworks", "country", "US"), "1", "name")
	f("part of a name", known("name", "Brindle Works Ovens"), "", "")
}

func TestSECFetchOfForeignInsurer(t *testing.T) {
	t.Parallel()
	network := fakenet.New(t)
	serve(network, "sec.www", map[string]string{
		"/files/company_tickers.json": `{"0":{"cik_str":900444,"ticker":"ZBRI","title":"BRINDLE VERSICHERUNGS AG /FI/"}}`,
	})
	facts := ifrsFacts("EUR")
	delete(facts, "ifrs-full EUR CurrentAssets")
	serve(network, "sec.data", map[string]string{
		"/submissions/CIK0000900444.json": `{"cik":"900444","name":"BRINDLE VERSICHERUNGS AG /FI/","sic":"6331","tickers":["ZBRI"],
			"addresses":{"business":{"stateOrCountry":"2M","stateOrCountryDescription":"Germany"}},
			"filings":{"recent":{"form":["6-K","20-F","F-3ASR"],"filingDate":["2026-03-01","2026-02-20","2026-02-19"],"items":["","",""]}}}`,
		"/api/xbrl/companyfacts/CIK0000900444.json": factsText(t, facts),
	})
	req := requestFor("brindle.de")
	req.Company = wikidataSays("name", "Brindle", "ticker", "ZBRI")
	got, err := NewSEC(network.Client()).Fetch(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	wantSpoken(t, got, "public_listing 1, distress_events_24m not_applicable, capital_raise_recency_days 19.5, "+
		"revenue_latest_usd not_applicable, total_assets_usd not_applicable, revenue_growth_yoy 0.25, net_margin 0.1, "+
		"operating_margin 0.2, profitable_years_5 3.3333, free_cash_flow_margin not_applicable, current_ratio not_applicable, "+
		"liabilities_to_assets not_applicable, cash_runway_months not_applicable")
	company := NewCompany(got.Claims...)
	for kind, want := range map[Kind]string{CIK: "900444", Name: "Brindle Versicherungs AG", Country: "DE", SIC: "6331", Ticker: "ZBRI"} {
		if company.Get(kind) != want {
			t.Errorf("%s is %q, want %q", kind, company.Get(kind), want)
		}
	}
}
