package source

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"
)

func factsOf(t *testing.T, of map[string][]obj) secFacts {
	t.Helper()
	facts, err := parseSECFacts(strings.NewReader(concepts(of)))
	if err != nil {
		t.Fatal(err)
	}
	return facts
}

func TestSECFacts(t *testing.T) {
	t.Parallel()
	f := func(name string, of map[string][]obj, signal, want string) {
		t.Helper()
		s := builder{source: "sec"}
		factsOf(t, of).observe(&s, instant)
		wantValid(t, s.result)
		if got := spoken(s.result)[signal]; got != want {
			t.Errorf("%s: %s = %q, want %q", name, signal, got, want)
		}
	}
	const sales = "RevenueFromContractWithCustomerExcludingAssessedTax"
	f("nothing", nil, "revenue_latest_usd", "not_found")
	f("the first concept that has data", map[string][]obj{"Revenues": yearsOf(5), "SalesRevenueNet": yearsOf(9)}, "revenue_latest_usd", "5")
	f("a concept whose data are old is passed over", map[string][]obj{sales: {fact("2019-01-01", "2019-12-31", "2020-02-01", "10-K", 7)},
		"Revenues": yearsOf(5)}, "revenue_latest_usd", "5")
	f("only years", map[string][]obj{"Revenues": {fact("2025-10-01", "2025-12-31", "2026-02-20", "10-K", 3)}}, "revenue_latest_usd",
		"not_found")
	f("a year of 52 weeks", map[string][]obj{"Revenues": {fact("2024-12-30", "2025-12-28", "2026-02-20", "10-K", 3)}}, "revenue_latest_usd",
		"3")
	f("only yearly reports", map[string][]obj{"Revenues": {fact("2025-01-01", "2025-12-31", "2026-02-20", "10-Q", 3)}},
		"revenue_latest_usd", "not_found")
	f("the later filing restates", map[string][]obj{"Revenues": {fact("2025-01-01", "2025-12-31", "2026-03-01", "10-K/A", 4),
		fact("2025-01-01", "2025-12-31", "2026-02-20", "10-K", 3)}}, "revenue_latest_usd", "4")
	f("growth", map[string][]obj{"Revenues": yearsOf(150, 100)}, "revenue_growth_yoy", "0.5")
	f("growth from nothing", map[string][]obj{"Revenues": yearsOf(150, 0)}, "revenue_growth_yoy", "not_found")
	f("growth over a gap", map[string][]obj{"Revenues": {yearsOf(150)[0], yearsOf(1, 1, 100)[2]}}, "revenue_growth_yoy", "not_found")
	f("margin of the same year only", map[string][]obj{"Revenues": yearsOf(100), "NetIncomeLoss": yearsOf(1, 50)[1:]}, "net_margin",
		"not_found")
	f("margin of the second concept", map[string][]obj{"Revenues": yearsOf(100), "ProfitLoss": yearsOf(-30)}, "net_margin", "-0.3")
	f("free cash flow without investments", map[string][]obj{"Revenues": yearsOf(100),
		"NetCashProvidedByUsedInOperatingActivities": yearsOf(20)}, "free_cash_flow_margin", "0.2")
	f("liabilities", map[string][]obj{"Assets": daysOf(100), "Liabilities": daysOf(60), "StockholdersEquity": daysOf(10)},
		"liabilities_to_assets", "0.6")
	f("liabilities from equity", map[string][]obj{"Assets": daysOf(100), "StockholdersEquity": daysOf(10)}, "liabilities_to_assets", "0.9")
	f("no current assets", map[string][]obj{"Assets": daysOf(100)}, "current_ratio", "not_found")
	f("nothing due", map[string][]obj{"AssetsCurrent": daysOf(100), "LiabilitiesCurrent": daysOf(0)}, "current_ratio", "not_found")
	burn := map[string][]obj{"NetCashProvidedByUsedInOperatingActivities": yearsOf(-100),
		"PaymentsToAcquirePropertyPlantAndEquipment": yearsOf(20), "CashAndCashEquivalentsAtCarryingValue": daysOf(90),
		"ShortTermInvestments": daysOf(30)}
	f("runway", burn, "cash_runway_months", "12")
	delete(burn, "CashAndCashEquivalentsAtCarryingValue")
	f("runway of unknown cash", burn, "cash_runway_months", "not_found")
	f("runway of one that earns", map[string][]obj{"NetCashProvidedByUsedInOperatingActivities": yearsOf(1)}, "cash_runway_months", "60")
	f("five years", map[string][]obj{"NetIncomeLoss": yearsOf(1, -1, 1, 1, 1, -1, -1)}, "profitable_years_5", "4")
	f("three years", map[string][]obj{"NetIncomeLoss": yearsOf(1, -1, 1)}, "profitable_years_5", "3.3333")
	f("two years", map[string][]obj{"NetIncomeLoss": yearsOf(1, 1)}, "profitable_years_5", "insufficient_history")
	old := []obj{fact("2021-01-01", "2021-12-31", "2022-02-01", "10-K", 1), fact("2020-01-01", "2020-12-31", "2022-02-01", "10-K", 1),
		fact("2019-01-01", "2019-12-31", "2022-02-01", "10-K", 1)}
	f("years long ago", map[string][]obj{"NetIncomeLoss": old}, "profitable_years_5", "not_found")
}

func TestSECFilings(t *testing.T) {
	t.Parallel()
	f := func(name, forms, dates, items, want string) {
		t.Helper()
		split := func(text string) string { return toJSON(strings.Split(text, "|")) }
		filer, err := parseFiler(strings.NewReader(fmt.Sprintf(`{"name":"X","filings":{"recent":{"form":%s,"filingDate":%s,"items":%s}}}`,
			split(forms), split(dates), split(items))))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		s := builder{source: "sec"}
		filer.observe(&s, instant)
		wantSpoken(t, s.result, want)
	}
	f("a filer of yearly reports", "10-K|4", "2026-02-20|2026-01-01", "|",
		"public_listing absent, distress_events_24m 0, capital_raise_recency_days absent")
	f("late twice, long ago once more", "NT 10-Q|NT 10-K|NT 10-K|10-K", "2025-11-11|2024-04-01|2024-01-01|2025-03-20", "|||",
		"public_listing absent, distress_events_24m 2, capital_raise_recency_days absent")
	f("trouble", "8-K|8-K|8-K|8-K/A|10-K", "2025-11-11|2025-04-01|2023-04-01|2025-05-01|2025-06-20", "1.03,9.01|5.02|4.02|4.02|",
		"public_listing absent, distress_events_24m 1, capital_raise_recency_days absent")
	f("a foreign filer", "20-F|6-K", "2025-06-20|2026-01-01", "|",
		"public_listing absent, distress_events_24m not_applicable, capital_raise_recency_days absent")
	f("one that reports no more", "10-K", "2023-06-20", "",
		"public_listing absent, distress_events_24m not_applicable, capital_raise_recency_days absent")
	f("raised", "D/A|424B3|S-8|S-3ASR", "2025-03-10|2026-03-08|2026-03-09|2026-03-09", "|||",
		"public_listing absent, distress_events_24m not_applicable, capital_raise_recency_days 2.5")
}

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
		{"3", "TWIM", "Twin Works Ltd"}, {"4", "BRND", "Brindle Works, Inc."}})
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
	f("a name of one word without a country", known("name", "Quillworks"), "", "")
	f("a name of one word, to be checked by country", known("name", "Quillworks", "country", "US"), "1", "name")
	f("part of a name", known("name", "Brindle Works Ovens"), "", "")
}

// repeated reads a text repeatedly, between a beginning and an end.
func repeated(begin, text, end string, times int) io.Reader {
	parts := []io.Reader{strings.NewReader(begin)}
	for range times {
		parts = append(parts, strings.NewReader(text))
	}
	return io.MultiReader(append(parts, strings.NewReader(end))...)
}

// TestSECFactsStream checks that a body of 40 MiB is never in memory as a whole.
func TestSECFactsStream(t *testing.T) {
	line := toJSON(fact("2025-01-01", "2025-12-31", "2026-02-20", "10-Q", 12345))
	concept := `"Concept":{"units":{"USD":[` + strings.TrimSuffix(strings.Repeat(line+",", 1000), ",") + `]}},`
	times := 40<<20/len(concept) + 1
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	facts, err := parseSECFacts(repeated(`{"facts":{"us-gaap":{`, concept, `"Assets":{"units":{"USD":[`+toJSON(daysOf(7)[0])+`]}}}}}`,
		times))
	runtime.ReadMemStats(&after)
	if err != nil || len(facts["Assets"]) != 1 {
		t.Fatalf("facts %v, %v", facts, err)
	}
	if total := after.TotalAlloc - before.TotalAlloc; total > 16<<20 {
		t.Errorf("reading %d MiB allocated %d MiB in all", times*len(concept)>>20, total>>20)
	}
}

func BenchmarkSECFacts(b *testing.B) {
	line := toJSON(fact("2025-01-01", "2025-12-31", "2026-02-20", "10-K", 12345))
	concept := `"%s":{"units":{"USD":[` + strings.TrimSuffix(strings.Repeat(line+",", 1000), ",") + `]}},`
	var all strings.Builder
	for i := range 40 {
		name := fmt.Sprintf("Concept%d", i)
		if i == 20 {
			name = "Revenues"
		}
		fmt.Fprintf(&all, concept, name)
	}
	body := `{"facts":{"us-gaap":{` + strings.TrimSuffix(all.String(), ",") + `}}}`
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := parseSECFacts(strings.NewReader(body)); err != nil {
			b.Fatal(err)
		}
	}
}

func FuzzSECFacts(f *testing.F) {
	f.Add(concepts(map[string][]obj{"Revenues": yearsOf(5, 4), "NetIncomeLoss": yearsOf(1, 2, 3), "Assets": daysOf(0),
		"Liabilities": daysOf(1)}))
	f.Fuzz(func(t *testing.T, body string) {
		facts, err := parseSECFacts(strings.NewReader(body))
		if err != nil {
			return
		}
		s := builder{source: "sec"}
		facts.observe(&s, instant)
		wantValid(t, s.result)
		for _, o := range s.result.Observations {
			if o.Signal == "cash_runway_months" && (o.Raw < 0 || o.Raw > 60) || o.Signal == "profitable_years_5" &&
				(o.Raw < 0 || o.Raw > 5) {
				t.Errorf("%+v", o)
			}
		}
	})
}

func FuzzSECFiler(f *testing.F) {
	f.Add(`{"name":"X","sic":"7372","tickers":["A"],"filings":{"recent":{"form":["10-K","8-K"],"filingDate":["2026-02-20","2026-02-21"],"items":["","1.03"]}}}`)
	f.Add(`{"0":{"cik_str":900111,"ticker":"QLWK","title":"QUILLWORKS CORP"}}`)
	f.Fuzz(func(t *testing.T, body string) {
		if filer, err := parseFiler(strings.NewReader(body)); err == nil {
			s := builder{source: "sec"}
			filer.observe(&s, instant)
			filer.claim(&s, "1", "key", Request{Registrable: "x.com"})
			wantValid(t, s.result)
		}
		if list, err := parseFilers(strings.NewReader(body)); err == nil {
			newFilerIndex(list)
		}
	})
}
