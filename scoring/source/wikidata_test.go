package source

import (
	"net/url"
	"strings"
	"testing"

	"companyscore/internal/test/fakenet"
	"companyscore/scoring/source/fetch"
)

// itemWith is a body with one item that has these claims.
func itemWith(claims obj) string {
	return toJSON(obj{"entities": obj{"Q5": obj{"id": "Q5", "labels": wdLabel("Five"), "claims": claims}}})
}

func oneItem(t *testing.T, claims obj) wikidataItem {
	t.Helper()
	items, err := parseItems(strings.NewReader(itemWith(claims)))
	if err != nil || len(items) != 1 {
		t.Fatalf("%d items, %v", len(items), err)
	}
	return items[0]
}

func TestWikidataQuery(t *testing.T) {
	t.Parallel()
	got := websiteQuery("brindleworks.com")
	for _, part := range []string{"<https://brindleworks.com>", "<https://brindleworks.com/>", "<http://www.brindleworks.com/>", "wdt:P856",
		"wd:Q5", "LIMIT 5", "<https://www.brindleworks.com/global/en.html> 1)"} {
		if !strings.Contains(got, part) {
			t.Errorf("%s is not in %s", part, got)
		}
	}
	for _, domain := range []string{"a.co", "brindleworks.com", strings.Repeat(strings.Repeat("a", 62)+".", 4) + "com"} {
		got := websiteQuery(domain)
		if size := len(url.QueryEscape(got)); size > 7000 || !strings.Contains(got, "<http://www."+domain+"/> 0)") {
			t.Errorf("the query for %s has %d bytes: %s", domain, size, got)
		}
	}
	_, err := NewWikidata(nil).Fetch(t.Context(), Request{Domain: "x", Registrable: `x.com> } UNION { ?item ?p ?o`, Now: instant})
	if err == nil {
		t.Error("a domain that is none was put into a query")
	}
}

func TestWikidataValues(t *testing.T) {
	t.Parallel()
	on := func(date string) obj { return wdDate(date, 11) }
	amount := func(rank, n, unit, date string) obj {
		if date == "" {
			return claimOf(rank, wdAmount(n, unit))
		}
		return claimOf(rank, wdAmount(n, unit), "P585", on(date))
	}
	f := func(name string, claims obj, signal, want string) {
		t.Helper()
		if got := spoken(oneItem(t, claims).observe(nil, Request{Now: instant}))[signal]; got != want {
			t.Errorf("%s: %s = %q, want %q", name, signal, got, want)
		}
	}
	people := func(statements ...obj) obj { return obj{"P1128": statements} }
	f("the newest counts", people(amount("normal", "+10", "1", "2023-01-01"), amount("normal", "+30", "1", "2025-01-01"),
		amount("normal", "+20", "1", "2024-01-01")), "employee_count", "30")
	f("a preferred one before newer ones", people(amount("preferred", "+10", "1", "2023-01-01"),
		amount("normal", "+30", "1", "2025-01-01")), "employee_count", "10")
	f("never a deprecated one", people(amount("deprecated", "+10", "1", "2025-01-01")), "employee_count", "absent")
	f("one with a date before one without", people(amount("normal", "+10", "1", ""), amount("normal", "+20", "1", "2022-01-01")),
		"employee_count", "20")
	f("without any date", people(amount("normal", "+10", "1", "")), "employee_count", "10")
	f("just six years old", people(amount("normal", "+10", "1", "2020-03-12")), "employee_count", "10")
	f("older than six years", people(amount("normal", "+10", "1", "2020-03-01")), "employee_count", "absent")
	f("of the future", people(amount("normal", "+10", "1", "2027-03-01")), "employee_count", "absent")
	f("no value", people(claimOf("normal", nil)), "employee_count", "absent")
	f("not a number", people(claimOf("normal", obj{"amount": "many"})), "employee_count", "absent")
	money := func(statements ...obj) obj { return obj{"P2139": statements} }
	f("dollars", money(amount("normal", "+5000000", "Q4917", "2024-12-31")), "revenue_latest_usd", "5e+06")
	f("pounds at the rate of their year", money(amount("normal", "+1000000", "Q25224", "2021-12-31")), "revenue_latest_usd", "1.376e+06")
	f("a currency that nobody converts", money(amount("normal", "+1000000", "Q123213", "2024-12-31")), "revenue_latest_usd",
		"not_applicable")
	f("a loss of sales", money(amount("normal", "-5", "Q4917", "2024-12-31")), "revenue_latest_usd", "absent")
	f("growth within one currency", money(amount("normal", "+110", "Q4916", "2024-12-31"), amount("normal", "+100", "Q4916", "2023-12-31")),
		"revenue_growth_yoy", "0.1")
	f("no growth between currencies", money(amount("normal", "+110", "Q4916", "2024-12-31"),
		amount("normal", "+100", "Q4917", "2023-12-31")), "revenue_growth_yoy", "absent")
	f("no growth over two years", money(amount("normal", "+110", "Q4916", "2024-12-31"), amount("normal", "+100", "Q4916", "2022-12-31")),
		"revenue_growth_yoy", "absent")
	margin := obj{"P2139": []obj{amount("normal", "+200", "Q4916", "2024-12-31")},
		"P2295": []obj{amount("normal", "-50", "Q4916", "2024-12-31"), amount("normal", "+9", "Q4916", "2023-12-31")}}
	f("a loss in the same period", margin, "net_margin", "-0.25")
	worth := func(day string) obj { return obj{"P2226": []obj{amount("normal", "+3000000000", "Q4917", day)}} }
	f("market value", worth("2025-12-31"), "market_value_usd", "3e+09")
	f("market value of long ago", worth("2024-12-31"), "market_value_usd", "absent")
	f("market value of an unknown day", worth(""), "market_value_usd", "absent")
	f("founded in a year", obj{"P571": []obj{claimOf("normal", wdDate("1998-00-00", 9))}}, "organization_age_years", "27.692")
	f("founded long ago", obj{"P571": []obj{claimOf("normal", wdDate("1096-00-00", 9))}}, "organization_age_years", "929.6715")
	f("founded in a century", obj{"P571": []obj{claimOf("normal", wdDate("1800-00-00", 7))}}, "organization_age_years", "absent")
	f("founded in the future", obj{"P571": []obj{claimOf("normal", on("2030-01-01"))}}, "organization_age_years", "absent")
	f("listed", obj{"P414": []obj{claimOf("normal", wdItem("Q1"))}}, "public_listing", "1")
	f("delisted", obj{"P414": []obj{claimOf("normal", wdItem("Q1"), "P582", on("2020-01-01"))}}, "public_listing", "absent")
}

func TestWikidataChoice(t *testing.T) {
	t.Parallel()
	candidates := []wikidataCandidate{{"Q1", 9}, {"Q2", 5}, {"Q30", 5}, {"Q4", 1}}
	f := func(name, want string, items ...wikidataItem) {
		t.Helper()
		got, ok := chooseItem(items, candidates)
		if got.QID != want || ok != (want != "") {
			t.Errorf("%s: chose %q, want %q", name, got.QID, want)
		}
	}
	f("none", "")
	f("only dissolved", "", wikidataItem{QID: "Q1", Dissolved: true})
	f("a living one", "Q2", wikidataItem{QID: "Q1", Telling: 6, Dissolved: true}, wikidataItem{QID: "Q2"})
	f("the one that says more", "Q4", wikidataItem{QID: "Q1", Telling: 1}, wikidataItem{QID: "Q4", Telling: 3})
	f("the one with more articles", "Q1", wikidataItem{QID: "Q2", Telling: 1}, wikidataItem{QID: "Q1", Telling: 1})
	f("the older one", "Q2", wikidataItem{QID: "Q30"}, wikidataItem{QID: "Q2"})
}

func TestWikidataCandidates(t *testing.T) {
	t.Parallel()
	f := func(name, want string, rows ...string) {
		t.Helper()
		var bindings []string
		for _, row := range rows {
			qid, depth, _ := strings.Cut(row, " ")
			binding := `{"item":{"value":"http://www.wikidata.org/entity/` + qid + `"},"n":{"value":"3"}`
			if depth != "" {
				binding += `,"d":{"type":"literal","value":"` + depth + `"}`
			}
			bindings = append(bindings, binding+"}")
		}
		found, err := parseCandidates(strings.NewReader(`{"results":{"bindings":[` + strings.Join(bindings, ",") + `]}}`))
		var got []string
		for _, c := range found {
			got = append(got, c.QID)
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %v, %v; want %s", name, got, err, want)
		}
	}
	f("none", "")
	f("without a depth", "Q1 Q2", "Q1", "Q2", "Q1")
	f("a path only", "Q7 Q8", "Q7 1", "Q8 1", "Q7 1")
	f("a root before paths", "Q8", "Q7 1", "Q8 0", "Q9 1", "Q8 1")
	f("too many", "Q1 Q2 Q3 Q4 Q5", "Q1 0", "Q2 0", "Q3 0", "Q4 0", "Q5 0", "Q6 0")
}

func TestWikidataOfSeveralItems(t *testing.T) {
	t.Parallel()
	network := fakenet.New(t)
	serve(network, "wikidata.query", map[string]string{"/sparql": sparql("Q7", 50, "Q8", 3, "Q8", 3)})
	serve(network, "wikidata.entity", map[string]string{
		"/w/api.php?" + encoded("action", "wbgetentities", "format", "json", "ids", "Q7|Q8", "languages", "en|mul", "maxlag", "5", "props",
			"labels|claims|sitelinks"): toJSON(obj{"entities": obj{
			"Q7": obj{"id": "Q7", "labels": wdLabel("The product"), "claims": obj{}},
			"Q8": obj{"id": "Q8", "labels": wdLabel("The company"), "claims": obj{"P1128": []obj{claimOf("normal", wdAmount("+12", "1"))}}},
		}}),
	})
	got, err := NewWikidata(network.Client()).Fetch(t.Context(), requestFor("brindleworks.com"))
	if err != nil {
		t.Fatal(err)
	}
	if name := NewCompany(got.Claims...).Get(Name); name != "The company" || spoken(got)["employee_count"] != "12" {
		t.Errorf("got %q with %s employees", name, spoken(got)["employee_count"])
	}
}

func TestWikidataRejectsBadAnswers(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", "{}", "[]", `{"results":`,
		`{"results":{"bindings":[{"item":{"value":"http://evil/Qx"},"n":{"value":"1"}}]}}`,
		`{"results":{"bindings":[{"item":{"value":"http://w/Q1"},"n":{"value":"x"}}]}}`, "<html>", strings.Repeat("[", 1000)} {
		if got, err := parseCandidates(strings.NewReader(body)); err == nil {
			t.Errorf("candidates in %.50q: %v", body, got)
		}
	}
	good := itemWith(obj{"P1128": []obj{claimOf("normal", wdAmount("+10", "1"))}})
	for _, body := range []string{"", "{}", good[:len(good)-10], `{"error":{"code":"no-such-entity"}}`,
		`{"entities":{"Q1":{"claims":{"P1128":"x"}}}}`, `{"entities":[]}`, strings.Repeat(`{"entities":`, 100)} {
		if got, err := parseItems(strings.NewReader(body)); err == nil {
			t.Errorf("items in %.50q: %v", body, got)
		}
		if got, err := parseLinks(strings.NewReader(body)); err == nil && !strings.Contains(body, "P1128") {
			t.Errorf("links in %.50q: %v", body, got)
		}
	}
	_, err := parseItems(strings.NewReader(`{"error":{"code":"maxlag","info":"Waiting"}}`))
	if WarningCode(err) != fetch.CodeRateLimited {
		t.Errorf("a lag is told as %q", WarningCode(err))
	}
	if items, err := parseItems(strings.NewReader(`{"entities":{"Q404":{"id":"Q404","missing":""}}}`)); err != nil || len(items) != 0 {
		t.Errorf("an item that was deleted: %v, %v", items, err)
	}
}

func FuzzWikidata(f *testing.F) {
	f.Add(itemWith(obj{"P1128": []obj{claimOf("normal", wdAmount("+10", "1"), "P585", wdDate("2024-01-01", 11))},
		"P2139": []obj{claimOf("normal", wdAmount("+10", "Q4916"))}, "P571": []obj{claimOf("normal", wdDate("1998-00-00", 9))}}))
	f.Add(sparql("Q7", 50))
	f.Fuzz(func(t *testing.T, body string) {
		if candidates, err := parseCandidates(strings.NewReader(body)); err == nil && len(candidates) > candidatesMax {
			t.Errorf("%d candidates", len(candidates))
		}
		if items, err := parseItems(strings.NewReader(body)); err == nil {
			for _, item := range items {
				wantValid(t, item.observe(map[string]wikidataLink{}, Request{Now: instant}))
			}
		}
		_, _ = parseLinks(strings.NewReader(body)) // must not panic
	})
}

func TestMoney(t *testing.T) {
	t.Parallel()
	f := func(currency string, year int, want float64) {
		t.Helper()
		if got, ok := inUSD(1, currency, year); got != want || ok != (want != 0) {
			t.Errorf("1 %s of %d is %v, want %v", currency, year, got, want)
		}
	}
	f("USD", 1990, 1)
	f("EUR", 2015, 1.110)
	f("EUR", 2000, 1.110)
	f("EUR", 2040, 1.130)
	f("JPY", 2024, 1/151.4)
	f("XXX", 2024, 0)
	for currency, rates := range usdPer {
		if currency != "USD" && len(rates) != 11 {
			t.Errorf("%s has rates of %d years", currency, len(rates))
		}
	}
	for qid, currency := range currencies {
		if usdPer[currency] == nil || !qidText.MatchString(qid) {
			t.Errorf("%s is %s, which has no rates", qid, currency)
		}
	}
}

func TestPlainName(t *testing.T) {
	t.Parallel()
	f := func(name, want string) {
		t.Helper()
		got := PlainName(name)
		if got != want || PlainName(got) != got {
			t.Errorf("PlainName(%q) = %q, then %q; want %q", name, got, PlainName(got), want)
		}
	}
	f("Quillworks", "quillworks")
	f("QUILLWORKS, INC.", "quillworks")
	f("Quillworks Holding GmbH & Co. KG", "quillworks")
	f("The Brindle Company, L.L.C.", "brindle")
	f("Ｑｕｉｌｌｗｏｒｋｓ S.A.", "quillworks")
	f("Brindle &amp; Sons Ltd", "brindle and sons")
	f("Inc.", "inc")
	f("The The Quill", "quill")
	f("The Ltd", "the")
	f("Müller-Bäckerei AG", "müller bäckerei")
	f("Cafe\u0301 Quill", "café quill")
	f("", "")
	f("—", "")
}

func FuzzPlainName(f *testing.F) {
	f.Add("The Quillworks Holding, Inc.")
	f.Add("Ｑ L.L.C.")
	f.Fuzz(func(t *testing.T, name string) {
		once := PlainName(name)
		if twice := PlainName(once); twice != once {
			t.Errorf("%q becomes %q and then %q", name, once, twice)
		}
	})
}
