package source

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// factsOf parses facts by "concept", "currency concept" or "taxonomy currency concept"; without them
// they are of us-gaap and in dollars.
func factsOf(t testing.TB, of map[string][]obj) secFacts {
	t.Helper()
	facts, err := parseSECFacts(strings.NewReader(factsText(t, of)))
	if err != nil {
		t.Fatal(err)
	}
	return facts
}

// factsText is the answer that factsOf parses.
func factsText(t testing.TB, of map[string][]obj) string {
	t.Helper()
	taxonomies := obj{"dei": obj{"EntityCommonStockSharesOutstanding": obj{"units": obj{"shares": []obj{}}}}}
	for name, facts := range of {
		words := strings.Fields(name)
		words = append([]string{"us-gaap", "USD"}[:max(0, 3-len(words))], words...)
		if len(words) != 3 {
			t.Fatalf("concept %q", name)
		}
		if taxonomies[words[0]] == nil {
			taxonomies[words[0]] = obj{}
		}
		concepts := taxonomies[words[0]].(obj)
		if concepts[words[2]] == nil {
			concepts[words[2]] = obj{"units": obj{"shares": []obj{{"end": "x"}}, "USD/shares": "x"}}
		}
		concepts[words[2]].(obj)["units"].(obj)[words[1]] = facts
	}
	return toJSON(obj{"cik": 900111, "facts": taxonomies})
}

// quarter is the value of a day in a quarterly report.
func quarter(end, filed string, val float64) obj { return fact("", end, filed, "10-Q", val) }

func TestSECFacts(t *testing.T) {
	t.Parallel()
	f := func(name string, of map[string][]obj, signal, want string) {
		t.Helper()
		s := builder{source: "sec"}
		factsOf(t, of).observe(&s, 0, instant)
		wantValid(t, s.result)
		if got := spoken(s.result)[signal]; got != want {
			t.Errorf("%s: %s = %q, want %q", name, signal, got, want)
		}
	}
	const (
		sales    = "RevenueFromContractWithCustomerExcludingAssessedTax"
		cashFlow = "NetCashProvidedByUsedInOperatingActivities"
		payments = "PaymentsToAcquirePropertyPlantAndEquipment"
		cash     = "CashAndCashEquivalentsAtCarryingValue"
		minority = "StockholdersEquityIncludingPortionAttributableToNoncontrollingInterest"
	)
	type facts = map[string][]obj
	before := yearsOf(0, 80, 60)[1:] // no value for the last year

	f("nothing", nil, "revenue_latest_usd", "not_found")
	f("the newest year of all concepts", facts{sales: before, "Revenues": yearsOf(90, 80)}, "revenue_latest_usd", "90")
	f("the newest year of another concept", facts{"Revenues": before, "SalesRevenueNet": yearsOf(50)}, "revenue_latest_usd", "50")
	f("the whole, not a part", facts{sales: yearsOf(98), "Revenues": yearsOf(100)}, "revenue_latest_usd", "100")
	f("the revenue of a broker", facts{"Revenues": yearsOf(100), "RevenuesNetOfInterestExpense": yearsOf(70)}, "revenue_latest_usd", "70")
	f("the revenue of a bank", facts{sales: yearsOf(5), "InterestIncomeExpenseNet": yearsOf(60, 50), "NoninterestIncome": yearsOf(20, 14)},
		"revenue_latest_usd", "80")
	f("the growth of a bank", facts{sales: yearsOf(5), "InterestIncomeExpenseNet": yearsOf(60, 50), "NoninterestIncome": yearsOf(20, 14)},
		"revenue_growth_yoy", "0.25")
	f("the revenue of a brewer, without excise taxes", facts{sales: yearsOf(80),
		"RevenueFromContractWithCustomerIncludingAssessedTax": yearsOf(100)}, "revenue_latest_usd", "80")
	f("revenue with taxes alone", facts{sales: before, "RevenueFromContractWithCustomerIncludingAssessedTax": yearsOf(100)},
		"revenue_latest_usd", "100")
	f("net interest income alone", facts{"InterestIncomeExpenseNet": yearsOf(60)}, "revenue_latest_usd", "not_found")
	f("data that are too old", facts{sales: {fact("2022-01-01", "2022-12-31", "2023-02-01", "10-K", 7)}}, "revenue_latest_usd", "not_found")
	f("a year that has not ended", facts{"Revenues": {fact("2026-01-01", "2026-12-31", "2026-02-20", "10-K", 7)}}, "revenue_latest_usd",
		"not_found")
	f("only years", facts{"Revenues": {fact("2025-10-01", "2025-12-31", "2026-02-20", "10-K", 3)}}, "revenue_latest_usd", "not_found")
	f("a year of 52 weeks", facts{"Revenues": {fact("2024-12-30", "2025-12-28", "2026-02-20", "10-K", 3)}}, "revenue_latest_usd", "3")
	f("only yearly reports", facts{"Revenues": {fact("2025-01-01", "2025-12-31", "2026-02-20", "10-Q", 3)}}, "revenue_latest_usd",
		"not_found")
	f("the later filing restates", facts{"Revenues": {fact("2025-01-01", "2025-12-31", "2026-03-01", "10-K/A", 4),
		fact("2025-01-01", "2025-12-31", "2026-02-20", "10-K", 3)}}, "revenue_latest_usd", "4")
	f("no revenue", facts{"Revenues": yearsOf(0)}, "revenue_latest_usd", "not_found")

	f("growth", facts{"Revenues": yearsOf(150, 100)}, "revenue_growth_yoy", "0.5")
	f("growth from nothing", facts{"Revenues": yearsOf(150, 0)}, "revenue_growth_yoy", "not_found")
	f("growth over a gap", facts{"Revenues": {yearsOf(150)[0], yearsOf(1, 1, 100)[2]}}, "revenue_growth_yoy", "not_found")
	f("growth of one concept", facts{sales: yearsOf(98, 50), "Revenues": yearsOf(100, 80)}, "revenue_growth_yoy", "0.25")
	f("growth of a part that has both years", facts{sales: yearsOf(96, 80), "Revenues": yearsOf(100)}, "revenue_growth_yoy", "0.2")
	f("growth of a broker", facts{"Revenues": yearsOf(100, 50), "RevenuesNetOfInterestExpense": yearsOf(70, 56)}, "revenue_growth_yoy",
		"0.25")
	f("growth over a change of the concept", facts{sales: before, "Revenues": yearsOf(100)}, "revenue_growth_yoy", "0.25")

	f("margin of the same year only", facts{"Revenues": yearsOf(100), "NetIncomeLoss": yearsOf(1, 50)[1:]}, "net_margin", "not_found")
	f("margin of the second concept", facts{"Revenues": yearsOf(100), "ProfitLoss": yearsOf(-30)}, "net_margin", "-0.3")
	f("income of the owners", facts{"Revenues": yearsOf(100), "ProfitLoss": yearsOf(35), "NetIncomeLoss": yearsOf(30)}, "net_margin", "0.3")
	f("income that another concept continues", facts{"Revenues": yearsOf(100), "ProfitLoss": yearsOf(35), "NetIncomeLoss": before},
		"net_margin", "0.35")

	f("free cash flow", facts{"Revenues": yearsOf(100), cashFlow: yearsOf(20), payments: yearsOf(5)}, "free_cash_flow_margin", "0.15")
	f("free cash flow without investments", facts{"Revenues": yearsOf(100), cashFlow: yearsOf(20)}, "free_cash_flow_margin", "not_found")
	f("investments of another year", facts{"Revenues": yearsOf(100), cashFlow: yearsOf(20), payments: before}, "free_cash_flow_margin",
		"not_found")
	f("investments by another name", facts{"Revenues": yearsOf(100), cashFlow: yearsOf(20), payments: before,
		"PaymentsToAcquireProductiveAssets": yearsOf(5)}, "free_cash_flow_margin", "0.15")
	f("all investments, not a part", facts{"Revenues": yearsOf(100), cashFlow: yearsOf(20), payments: yearsOf(4),
		"PaymentsToAcquireProductiveAssets": yearsOf(5)}, "free_cash_flow_margin", "0.15")
	f("investments below 0", facts{"Revenues": yearsOf(100), cashFlow: yearsOf(20), payments: yearsOf(-5)}, "free_cash_flow_margin", "0.15")

	f("liabilities", facts{"Assets": daysOf(100), "Liabilities": daysOf(60), "StockholdersEquity": daysOf(10)}, "liabilities_to_assets",
		"0.6")
	f("liabilities from equity", facts{"Assets": daysOf(100), "StockholdersEquity": daysOf(10)}, "liabilities_to_assets", "0.9")
	f("minority interests", facts{"Assets": daysOf(100), "StockholdersEquity": daysOf(10), minority: daysOf(15)},
		"liabilities_to_assets", "0.85")
	f("redeemable interests", facts{"Assets": daysOf(100), minority: daysOf(15),
		"RedeemableNoncontrollingInterestEquityCarryingAmount": daysOf(5)}, "liabilities_to_assets", "0.8")
	f("liabilities of the newest quarter", facts{"Assets": append(daysOf(100), quarter("2026-02-28", "2026-03-09", 120)),
		"Liabilities": append(daysOf(60), quarter("2026-02-28", "2026-03-09", 90))}, "liabilities_to_assets", "0.75")
	f("a quarter without liabilities", facts{"Assets": append(daysOf(100), quarter("2026-02-28", "2026-03-09", 120)),
		"Liabilities": daysOf(60)}, "liabilities_to_assets", "0.6")
	f("assets of the fiscal year", facts{"Assets": append(daysOf(100), quarter("2026-02-28", "2026-03-09", 120))}, "total_assets_usd",
		"100")
	f("assets of the fiscal year, again in a quarterly report", facts{"Assets": append(daysOf(100),
		quarter("2025-12-31", "2026-03-09", 101))}, "total_assets_usd", "101")
	f("no current assets", facts{"Assets": daysOf(100)}, "current_ratio", "not_found")
	f("nothing due", facts{"AssetsCurrent": daysOf(100), "LiabilitiesCurrent": daysOf(0)}, "current_ratio", "not_found")
	f("current ratio of the newest quarter", facts{"AssetsCurrent": append(daysOf(100), quarter("2026-02-28", "2026-03-09", 90)),
		"LiabilitiesCurrent": append(daysOf(50), quarter("2026-02-28", "2026-03-09", 60))}, "current_ratio", "1.5")
	f("a quarter in a report of events", facts{"AssetsCurrent": append(daysOf(100), fact("", "2026-02-28", "2026-03-09", "8-K", 90)),
		"LiabilitiesCurrent": append(daysOf(50), fact("", "2026-02-28", "2026-03-09", "8-K", 60))}, "current_ratio", "2")

	burn := facts{cashFlow: yearsOf(-100), payments: yearsOf(20), cash: daysOf(90), "ShortTermInvestments": daysOf(30)}
	f("runway", burn, "cash_runway_months", "12")
	burn[cash] = append(burn[cash], quarter("2026-02-28", "2026-03-09", 60))
	f("runway of the newest quarter, which has no securities", burn, "cash_runway_months", "6")
	delete(burn, payments)
	f("runway with unknown investments", burn, "cash_runway_months", "7.2")
	delete(burn, cash)
	f("runway of unknown cash", burn, "cash_runway_months", "not_found")
	f("runway of one that earns", facts{cashFlow: yearsOf(1), payments: yearsOf(0)}, "cash_runway_months", "60")
	f("runway of a filer with profits and unknown investments", facts{cashFlow: yearsOf(1)}, "cash_runway_months", "not_found")

	f("five years", facts{"NetIncomeLoss": yearsOf(1, -1, 1, 1, 1, -1, -1)}, "profitable_years_5", "4")
	f("five years of two concepts", facts{"NetIncomeLoss": yearsOf(1, -1), "ProfitLoss": yearsOf(-1, 1, 1, 1, -1)}, "profitable_years_5",
		"3")
	f("three years", facts{"NetIncomeLoss": yearsOf(1, -1, 1)}, "profitable_years_5", "3.3333")
	f("two years", facts{"NetIncomeLoss": yearsOf(1, 1)}, "profitable_years_5", "insufficient_history")
	old := []obj{fact("2021-01-01", "2021-12-31", "2022-02-01", "10-K", 1), fact("2020-01-01", "2020-12-31", "2022-02-01", "10-K", 1),
		fact("2019-01-01", "2019-12-31", "2022-02-01", "10-K", 1)}
	f("years long ago", facts{"NetIncomeLoss": old}, "profitable_years_5", "not_found")
}

// foreign returns facts in the form 20-F.
func foreign(facts []obj) []obj {
	for _, f := range facts {
		f["form"] = "20-F"
	}
	return facts
}

// ifrsFacts are the ten numbers of a filer under IFRS.
func ifrsFacts(currency string) map[string][]obj {
	of := map[string][]obj{
		"Revenue": yearsOf(100, 80), "RevenueFromContractsWithCustomers": yearsOf(95, 50),
		"ProfitLossAttributableToOwnersOfParent": yearsOf(10, -1, 5), "ProfitLoss": yearsOf(12, -2, 6),
		"ProfitLossFromOperatingActivities": yearsOf(20), "CashFlowsFromUsedInOperatingActivities": yearsOf(-15),
		"PurchaseOfPropertyPlantAndEquipmentClassifiedAsInvestingActivities": yearsOf(5),
		"Assets": daysOf(200), "Equity": daysOf(150), "EquityAttributableToOwnersOfParent": daysOf(90), "CurrentAssets": daysOf(60),
		"CurrentLiabilities": daysOf(40), "CashAndCashEquivalents": daysOf(25),
		"ShorttermDepositsNotClassifiedAsCashEquivalents": daysOf(5),
	}
	named := map[string][]obj{}
	for concept, facts := range of {
		named["ifrs-full "+currency+" "+concept] = foreign(facts)
	}
	return named
}

func TestSECFactsOfForeignFilers(t *testing.T) {
	t.Parallel()
	f := func(name string, of map[string][]obj, want string) {
		t.Helper()
		s := builder{source: "sec"}
		factsOf(t, of).observe(&s, 0, instant)
		t.Log(name)
		wantSpoken(t, s.result, want)
	}
	const ratios = ", revenue_growth_yoy 0.25, net_margin 0.1, operating_margin 0.2, free_cash_flow_margin -0.2, current_ratio 1.5, " +
		"liabilities_to_assets 0.25, cash_runway_months 18, profitable_years_5 3.3333"
	f("in dollars", ifrsFacts("USD"), "revenue_latest_usd 100, total_assets_usd 200"+ratios)
	f("in another currency", ifrsFacts("EUR"), "revenue_latest_usd not_applicable, total_assets_usd not_applicable"+ratios)

	translated := ifrsFacts("TWD")
	translated["ifrs-full USD Revenue"] = foreign(yearsOf(3, 2))
	translated["ifrs-full USD ProfitLoss"] = foreign(yearsOf(7))
	f("translated into dollars", translated, "revenue_latest_usd 3, total_assets_usd not_applicable"+ratios)

	translated = ifrsFacts("TWD")
	for name, facts := range ifrsFacts("USD") {
		for _, f := range facts {
			f["val"] = f["val"].(float64) / 20
		}
		translated[name] = facts
	}
	f("as many values in dollars", translated, "revenue_latest_usd 5, total_assets_usd 10"+ratios)

	changed := ifrsFacts("USD")
	changed["ifrs-full CAD Revenue"] = foreign(yearsOf(1, 1, 1, 1, 1, 1, 1, 1)[1:])
	changed["ifrs-full CAD Assets"] = foreign(daysOf(1, 1, 1, 1, 1, 1, 1, 1)[1:])
	f("another currency until the year before", changed, "revenue_latest_usd 100, total_assets_usd 200"+ratios)

	changed = ifrsFacts("USD")
	for _, concept := range []string{"Revenue", "RevenueFromContractsWithCustomers"} {
		changed["ifrs-full USD "+concept] = foreign(yearsOf(0, 80)[1:])
	}
	changed["us-gaap USD Revenues"] = yearsOf(100)
	f("another taxonomy since the last year", changed, "revenue_latest_usd 100, total_assets_usd 200"+ratios)
}

// TestSECFactsNeverMixCurrencies gives each concept other currencies with values of another size: no
// ratio may come from two of them.
func TestSECFactsNeverMixCurrencies(t *testing.T) {
	t.Parallel()
	for _, others := range [][]string{{"EUR"}, {"JPY", "USD"}, {"AAA", "ZZZ"}} {
		of := ifrsFacts("CHF")
		for concept := range ifrsFacts("") {
			for i, currency := range others {
				if (len(concept)+i)%2 == 0 {
					of[strings.Replace(concept, "  ", " "+currency+" ", 1)] = foreign(yearsOf(1e9))
				}
			}
		}
		s := builder{source: "sec"}
		factsOf(t, of).observe(&s, 0, instant)
		for signal, got := range spoken(s.result) {
			want := map[string]string{"net_margin": "0.1", "operating_margin": "0.2", "current_ratio": "1.5",
				"liabilities_to_assets": "0.25",
				"revenue_growth_yoy":    "0.25", "free_cash_flow_margin": "-0.2", "cash_runway_months": "18"}[signal]
			if want != "" && got != want {
				t.Errorf("with %v: %s is %s, want %s", others, signal, got, want)
			}
		}
	}
}

func TestSECFactsByIndustry(t *testing.T) {
	t.Parallel()
	base := func(with map[string][]obj) map[string][]obj {
		of := map[string][]obj{
			"Revenues": yearsOf(100, 80), "NetIncomeLoss": yearsOf(10, 10, 10), "NetCashProvidedByUsedInOperatingActivities": yearsOf(-90),
			"PaymentsToAcquireProductiveAssets": yearsOf(10), "Assets": daysOf(1000), "Liabilities": daysOf(900),
			"CashAndCashEquivalentsAtCarryingValue": daysOf(50),
		}
		for concept, facts := range with {
			of[concept] = facts
		}
		return of
	}
	f := func(name string, sic int, of map[string][]obj, margin, ratio, leverage, runway string) {
		t.Helper()
		s := builder{source: "sec"}
		factsOf(t, of).observe(&s, sic, instant)
		wantValid(t, s.result)
		said := spoken(s.result)
		for signal, want := range map[string]string{"free_cash_flow_margin": margin, "current_ratio": ratio,
			"liabilities_to_assets": leverage, "cash_runway_months": runway} {
			if said[signal] != want {
				t.Errorf("%s: %s is %s, want %s", name, signal, said[signal], want)
			}
		}
		if said["profitable_years_5"] != "5" {
			t.Errorf("%s: profitable years are %s", name, said["profitable_years_5"])
		}
		if of["Revenues"] != nil && (said["net_margin"] != "0.1" || said["revenue_growth_yoy"] != "0.25") {
			t.Errorf("%s: %v", name, said)
		}
	}
	const none = "not_applicable"
	classified := map[string][]obj{"AssetsCurrent": daysOf(30), "LiabilitiesCurrent": daysOf(20)}
	shell := base(classified)
	delete(shell, "Revenues")

	f("software", 7372, base(nil), "-1", "not_found", "0.9", "6")
	f("unknown", 0, base(nil), "-1", "not_found", "0.9", "6")
	f("a bank", 6021, base(nil), none, none, none, none)
	f("a bank that has current assets", 6022, base(classified), none, none, none, none)
	f("a lender", 6141, base(nil), none, none, none, none)
	f("a broker", 6211, base(nil), none, none, none, none)
	f("an insurer", 6331, base(nil), none, none, none, none)
	f("an investor", 6799, base(nil), none, none, none, none)
	f("a fund", 6726, base(nil), none, none, none, none)
	f("a payment company", 6099, base(classified), "-1", "1.5", "0.9", "6")
	f("an exchange", 6200, base(classified), "-1", "1.5", "0.9", "6")
	f("a health plan", 6324, base(classified), "-1", "1.5", "0.9", "6")
	f("an insurance broker", 6411, base(nil), "-1", "not_found", "0.9", "6")
	f("a REIT", 6798, base(nil), none, none, "0.9", none)
	f("a REIT of mortgages", 6798, base(map[string][]obj{"InterestIncomeExpenseNet": yearsOf(30)}), none, none, none, none)
	f("a REIT of hotels with current assets", 6798, base(classified), "-1", "1.5", "0.9", "6")
	f("a landlord", 6512, base(nil), none, none, "0.9", none)
	f("an estate agent", 6531, base(classified), "-1", "1.5", "0.9", "6")
	f("a shell", 6770, shell, none, none, none, none)
	f("a company that was a shell", 6770, base(classified), "-1", "1.5", "0.9", "6")
	f("patents", 6794, base(nil), "-1", "not_found", "0.9", "6")

	s := builder{source: "sec"}
	secFacts(nil).observe(&s, 6021, instant)
	if said := spoken(s.result); said["current_ratio"] != none || said["net_margin"] != "not_found" {
		t.Errorf("a bank without numbers: %v", said)
	}
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
	if err != nil || len(facts[dollar]["Assets"]) != 1 {
		t.Fatalf("facts %v, %v", facts, err)
	}
	if total := after.TotalAlloc - before.TotalAlloc; total > 16<<20 {
		t.Errorf("reading %d MiB allocated %d MiB in all", times*len(concept)>>20, total>>20)
	}
}

// largeFacts returns an answer of at least so many bytes, as of a large filer: each concept has twenty
// years in quarterly and annual reports, and one concept in ten is read.
func largeFacts(size int) string {
	var lines []string
	for year := range 20 {
		for q := range 12 {
			end := time.Date(2006+year, time.Month(1+q), 28, 0, 0, 0, 0, time.UTC)
			form := "10-Q"
			if q%4 == 0 {
				form = "10-K"
			}
			lines = append(lines, fmt.Sprintf(`{"start":%q,"end":%q,"val":%d,"accn":"0000900111-26-%06d","fy":%d,"fp":"FY","form":%q,`+
				`"filed":%q,"frame":"CY%dQ%d"}`, end.AddDate(-1, 0, 1).Format(time.DateOnly), end.Format(time.DateOnly), 1_000_000*(q+1), q,
				2006+year, form, end.AddDate(0, 1, 0).Format(time.DateOnly), 2006+year, q%4+1))
		}
	}
	facts := `{"label":"A number","description":"What the number is, in a sentence or two of the taxonomy.","units":{"USD":[` +
		strings.Join(lines, ",") + `]}}`
	var read []string
	for concept := range conceptsRead {
		read = append(read, concept)
	}
	slices.Sort(read)
	var b strings.Builder
	b.WriteString(`{"cik":900111,"entityName":"Quillworks Corp","facts":{"dei":{},"us-gaap":{`)
	for i := 0; b.Len() < size; i++ {
		name := fmt.Sprintf("Concept%d", i)
		if i%10 == 0 && i/10 < len(read) {
			name = read[i/10]
		}
		fmt.Fprintf(&b, "%q:%s,", name, facts)
	}
	b.WriteString(`"Last":` + facts + `}}}`)
	return b.String()
}

// BenchmarkSECFacts reads 10 MB of companyfacts and derives the signals.
func BenchmarkSECFacts(b *testing.B) {
	body := largeFacts(10_000_000)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		facts, err := parseSECFacts(strings.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		facts.observe(&builder{source: "sec"}, 7372, instant)
	}
}
func FuzzSECFacts(f *testing.F) {
	f.Add(concepts(map[string][]obj{"Revenues": yearsOf(5, 4), "NetIncomeLoss": yearsOf(1, 2, 3), "Assets": daysOf(0),
		"Liabilities": daysOf(1)}), 7372)
	f.Add(concepts(map[string][]obj{"InterestIncomeExpenseNet": yearsOf(5, 4), "NoninterestIncome": yearsOf(1, 2, 3),
		"AssetsCurrent": daysOf(3), "LiabilitiesCurrent": daysOf(1)}), 6798)
	f.Add(`{"facts":{"ifrs-full":{"Revenue":{"units":{"EUR":[{"start":"2025-01-01","end":"2025-12-31","val":9e307,"form":"20-F",`+
		`"filed":"2026-03-01"}],"USD":[{"start":"2024-01-01","end":"2024-12-31","val":-1,"form":"40-F","filed":"2026-03-01"}]}}}}}`, 0)
	f.Fuzz(func(t *testing.T, body string, sic int) {
		facts, err := parseSECFacts(strings.NewReader(body))
		if err != nil {
			return
		}
		s := builder{source: "sec"}
		facts.observe(&s, sic, instant)
		wantValid(t, s.result)
		said := spoken(s.result)
		for _, signal := range factSignals {
			if said[signal] == "" {
				t.Errorf("nothing said about %s", signal)
			}
		}
		for _, o := range s.result.Observations {
			if o.Signal == "cash_runway_months" && (o.Raw < 0 || o.Raw > 60) || o.Signal == "profitable_years_5" &&
				(o.Raw < 0 || o.Raw > 5) || strings.HasSuffix(o.Signal, "_usd") && o.Raw < 0 {
				t.Errorf("%+v", o)
			}
		}
	})
}
