package source

import (
	"fmt"
	"strings"
	"testing"
)

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
	raised := func(name, forms, dates, want string) {
		t.Helper()
		f(name, forms, dates, strings.Repeat("|", strings.Count(forms, "|")), "public_listing absent, distress_events_24m not_applicable, "+
			"capital_raise_recency_days "+want)
	}
	const days = "2025-03-10|2026-03-08|2026-03-09|2026-03-10" // the first is 365.5 days ago
	raised("a private placement", "D/A|S-8|4|144", days, "365.5")
	raised("a shelf", "S-3|S-8|4|144", days, "365.5")
	raised("an automatic shelf", "S-3ASR|S-8|4|144", days, "365.5")
	raised("an automatic shelf of a foreign issuer", "F-3ASR|6-K|6-K|6-K", days, "365.5")
	raised("a takedown", "424B5|424B2|4|144", days, "2.5")
	raised("resales by holders", "424B4|424B3|424B7|424B3", days, "365.5")
	raised("nothing but resales", "424B3|424B7|S-4|POS AM", days, "absent")
	raised("others are no raise", "424B1|424B8|424B6|424A", days, "365.5")
}

func TestSECNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"QUILLWORKS CORP /DE/": "QUILLWORKS CORP", "Quillworks Corp /NEW": "Quillworks Corp", "QUILLWORKS CORP/MN": "QUILLWORKS CORP",
		"QUILLWORKS PLC /ADR/ /FI": "QUILLWORKS PLC", "QUILLWORKS \\WA\\": "QUILLWORKS", "QUILLWORKS CORP/": "QUILLWORKS CORP",
		"Brindle A/S": "Brindle A/S", "Brindle 24/7": "Brindle 24/7", "Brindle/bun": "Brindle/bun", "/DE/": "/DE/",
		"  Quill&amp;Co ": "Quill&Co",
	} {
		if got := filerName(name); got != want {
			t.Errorf("filerName(%q) = %q, want %q", name, got, want)
		}
	}
	if list, err := parseFilers(strings.NewReader(`{"0":{"cik_str":1,"ticker":"q","title":"QUILLWORKS CORP /DE/"}}`)); err != nil ||
		list[0] != (filer{CIK: "1", Ticker: "Q", Title: "QUILLWORKS CORP"}) {
		t.Errorf("filers %v, %v", list, err)
	}
	for name, want := range map[string]string{
		"Quillworks, Inc.": "Quillworks, Inc.", "QUILLWORKS CORP": "Quillworks Corp", "BRINDLE AG": "Brindle AG",
		"BRINDLE SE": "Brindle SE", "BANK OF BRINDLE": "Bank of Brindle", "THE BRINDLE CO": "The Brindle Co", "BRINDLE PLC": "Brindle PLC",
		"BRINDLE & SONS, LLC": "Brindle & Sons, LLC", "Q&B INC": "Q&B Inc", "3Q INC": "3Q Inc", "CVB HOLDINGS LTD.": "CVB Holdings Ltd.",
		"BRINDLE S.A.": "Brindle S.A.", "BRINDLE.COM INC": "Brindle.com Inc", "QUILL-WORKS": "Quill-Works",
		"BRINDLE'S": "Brindle's", "ÖLWERKE AG": "Ölwerke AG", "QAQ SE": "QAQ SE", "OVEN INC": "Oven Inc", "": "",
	} {
		if got := titleCase(name, []string{"QAQ", "OVEN"}); got != want {
			t.Errorf("titleCase(%q) = %q, want %q", name, got, want)
		}
	}
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
