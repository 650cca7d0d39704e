package resolve

import (
	"encoding/csv"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	t.Parallel()
	f := func(kind Kind, text string, want Kind, value string) {
		t.Helper()
		q, err := Parse(kind, text)
		if err != nil || q.Kind != want || q.value != value {
			t.Errorf("Parse(%q, %q) = %+v, %v; want %s %q", kind, text, q, err, want, value)
		}
	}
	f("", "Apple, Inc.", Name, "apple")
	f("", " Acme Works /DE/ ", Name, "acme works")
	f("", "AC/DC", Name, "ac dc")
	f("", "AAPL", Ticker, "AAPL")
	f("", "BRK.B", Ticker, "BRK-B")
	f("", "Nasdaq:AAPL", Ticker, "AAPL")
	f("", "0000320193", CIK, "320193")
	f("", "000", Name, "000")
	f("", "5299000BRINDLEWOR123", LEI, "5299000BRINDLEWOR123")
	f("", "US0378331005", ISIN, "US0378331005")
	f(Name, "IBM", Name, "ibm")
	f(Ticker, "brk.b", Ticker, "BRK-B")
	f(ISIN, "us0378331005", ISIN, "US0378331005")
	bad := func(kind Kind, text, want string) {
		t.Helper()
		if _, err := Parse(kind, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q, %.30q): %v; want %s", kind, text, err, want)
		}
	}
	bad("", " \t", "empty")
	bad("", strings.Repeat("a", 5000), "at most 512")
	bad("", "a\xff", "UTF-8")
	bad("", "!?", "letters or digits")
	bad(CIK, "x", "Central Index Key")
	bad(CIK, "000", "Central Index Key")
	bad(LEI, "x", "Legal Entity Identifier")
	bad(ISIN, "x", "ISIN")
	bad(Ticker, "???", "stock symbol")
}

func TestRead(t *testing.T) {
	t.Parallel()
	f := func(name, text string, asCSV bool, want string, faults ...string) {
		t.Helper()
		queries, found, err := Read(strings.NewReader(text), asCSV)
		var got, wrong []string
		for _, q := range queries {
			asked := string(q.Kind) + " " + q.value
			if q.exchange != "" {
				asked += "@" + q.exchange
			}
			got = append(got, asked)
		}
		for _, fault := range found {
			wrong = append(wrong, fault.String())
		}
		if err != nil || strings.Join(got, "; ") != want || !slices.Equal(wrong, faults) {
			t.Errorf("%s: %q, faults %q, %v", name, got, wrong, err)
		}
	}
	f("nothing", "", false, "")
	f("lines", "Apple, Inc.\nAAPL\r\n\n320193", false, "name apple; ticker AAPL; cik 320193", "line 3: empty")
	f("a column by its header", "id,CIK\n1,42\n2,\n3,x\n", false, "cik 42", "line 3: empty", `line 4: "x": not a Central Index Key`)
	f("a byte order mark and quotes", "\ufeffname\n\"Apple, Inc.\"\n\nx y", false, "name apple; name x y", "line 3: empty")
	f("an exchange", "ticker,exchange\nabt,NYSE\nair,\n", false, "ticker ABT@NYSE; ticker AIR")
	f("the first column", "Acme Works,5\nAAPL,6\n", true, "name acme works; ticker AAPL")
	f("a row of several lines", "name,note\nAcme,\"a\nb\"\n\nBrindle,c\n", false, "name acme; name brindle", "line 4: empty")
	f("too few cells", "note,name\nx\n", false, "", "line 2: empty")
	if _, _, err := Read(strings.NewReader(strings.Repeat("a\n", linesMax)), false); err != nil {
		t.Errorf("the most lines: %v", err)
	}
	if _, _, err := Read(strings.NewReader(strings.Repeat("a\n", linesMax+1)), false); err == nil {
		t.Error("too many lines are read")
	}
}

func FuzzRead(f *testing.F) {
	f.Add("Apple, Inc.\nAAPL\n\n320193", false)
	f.Add("name,ticker\n\"a\nb\",c\n\n", true)
	f.Add("ticker,exchange\nabt,NYSE\n\"", false)
	f.Fuzz(func(t *testing.T, text string, asCSV bool) {
		queries, faults, err := Read(strings.NewReader(text), asCSV)
		if err != nil {
			return
		}
		lines := strings.Count(text, "\n") + 1
		last := 0
		for _, q := range queries {
			if q.Line <= last || q.Line > lines || q.value == "" || q.Kind == "" || len(q.Input) > textMax {
				t.Errorf("question %+v after line %d of %d", q, last, lines)
			}
			last = q.Line
		}
		for _, fault := range faults {
			if fault.Line < 1 || fault.Line > lines || fault.Reason == "" {
				t.Errorf("fault %+v of %d lines", fault, lines)
			}
		}
		m := NewMatcher(queries)
		for _, q := range queries {
			m.Add(Company{Domain: "a.com", Name: q.Input, Names: []string{q.Input}, Tickers: []string{q.exchange + ":" + q.value}})
		}
		for _, a := range m.Answers() {
			if a.Likelihood < 0 || a.Likelihood > 1 {
				t.Errorf("likelihood of %+v", a)
			}
		}
	})
}

var companies = []Company{
	{Domain: "abbott.com", Name: "Abbott Laboratories", Names: []string{"Abbott Laboratories", "Abbott"}, Tickers: []string{"NYSE:ABT"},
		CIKs: []string{"1800"}, ISINs: []string{"US0028241000"}},
	{Domain: "abtworks.co.uk", Name: "ABT Works", Names: []string{"ABT Works Ltd"}, Tickers: []string{"LSE:ABT"}},
	{Domain: "twin-a.com", Name: "Twin", Names: []string{"Twin Inc"}, LEIs: []string{"5299000BRINDLEWOR123"}},
	{Domain: "twin-b.com", Name: "Twin", Names: []string{"Twin GmbH"}, LEIs: []string{"5299000BRINDLEWOR123"}},
	{Domain: "rover.com", Name: "Rover", Names: []string{"Rover"}, Tickers: []string{"NMS:ROVR", ":ROVR"}},
	{Domain: "ibm.com", Name: "IBM", Names: []string{"IBM"}},
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	f := func(kind Kind, text string, want Answer) {
		t.Helper()
		q, err := Parse(kind, text)
		if err != nil {
			t.Fatal(err)
		}
		want.Input = text
		if want.Others == nil {
			want.Others = []Candidate{}
		}
		for range 5 { // in any order
			m := NewMatcher([]Query{q})
			for _, i := range rand.Perm(len(companies)) {
				m.Add(companies[i])
			}
			if diff := cmp.Diff([]Answer{want}, m.Answers()); diff != "" {
				t.Fatalf("%s %q:\n%s", kind, text, diff)
			}
		}
	}
	one := func(kind Kind, domain, name string, likelihood float64) Answer {
		return Answer{Kind: kind, Candidate: Candidate{domain, name, likelihood}}
	}
	f("", "0000001800", one(CIK, "abbott.com", "Abbott Laboratories", 0.99))
	f("", "US0028241000", one(ISIN, "abbott.com", "Abbott Laboratories", 0.99))
	f("", "Abbott Laboratories Inc.", one(Name, "abbott.com", "Abbott Laboratories", 0.95))
	f("", "ABBOTTLABORATORIES", one(Name, "abbott.com", "Abbott Laboratories", 0.9))
	f("", "Abbott", one(Name, "abbott.com", "Abbott", 0.9))
	f("", "Abbott Diagnostics", one(Name, "abbott.com", "Abbott", 0.2))
	f("", "Nobody At All", one(Name, "", "", 0))
	f("", "NYSE:ABT", one(Ticker, "abbott.com", "Abbott Laboratories", 0.99))
	f("", "NASDAQ:ROVR", one(Ticker, "rover.com", "Rover", 0.99))
	f("", "NYSE:ROVR", one(Ticker, "rover.com", "Rover", 0.5))
	f("", "IBM", one(Name, "ibm.com", "IBM", 0.9)) // nobody has it as a ticker
	f(Ticker, "IBM", one(Ticker, "", "", 0))
	both := one(Ticker, "abbott.com", "Abbott Laboratories", 0.5)
	both.Ambiguous, both.Others = true, []Candidate{{"abtworks.co.uk", "ABT Works", 0.5}}
	f("", "ABT", both)
	twins := one(LEI, "twin-a.com", "Twin", 0.5)
	twins.Ambiguous, twins.Others = true, []Candidate{{"twin-b.com", "Twin", 0.5}}
	f("", "5299000BRINDLEWOR123", twins)
	twins = one(Name, "twin-a.com", "Twin Inc", 0.45)
	twins.Ambiguous, twins.Others = true, []Candidate{{"twin-b.com", "Twin GmbH", 0.45}}
	f("", "Twin", twins)
}

// The likelihoods of names hold for filers with the SEC, whose names are from another list than those of the examples.
func TestLikelihoodsOfNames(t *testing.T) {
	t.Parallel()
	var queries []Query
	var domains []string
	filers := readCSV(t, "testdata/filers.csv")
	for _, row := range filers {
		q, err := Parse(Name, row[0])
		if err != nil {
			t.Fatal(err)
		}
		queries, domains = append(queries, q), append(domains, row[1])
	}
	m := NewMatcher(queries)
	for _, file := range []string{"../../examples/companies.csv", "../../examples/listed.csv"} {
		for _, row := range readCSV(t, file) {
			m.Add(Company{Domain: row[0], Name: row[1], Names: []string{row[1]}})
		}
	}
	var sure, sureRight, split, splitRight int
	for i, a := range m.Answers() {
		right := slices.Contains(strings.Split(domains[i], "|"), a.Domain)
		switch {
		case a.Likelihood >= 0.9:
			sure++
			if right {
				sureRight++
			} else {
				t.Logf("%s is not %s but %s", a.Input, a.Domain, domains[i])
			}
		case a.Domain != "":
			split++
			if right {
				splitRight++
			}
		}
	}
	t.Logf("of %d filers: %d of %d right at 0.9 or more, %d of %d below", len(filers), sureRight, sure, splitRight, split)
	if float64(sureRight) < 0.95*float64(sure) {
		t.Errorf("at 0.9 or more %d of %d are right, want 95 %%", sureRight, sure)
	}
	if float64(sure) < 0.85*float64(len(filers)) {
		t.Errorf("%d of %d filers have a likelihood of 0.9 or more, want 85 %%", sure, len(filers))
	}
}

func readCSV(t *testing.T, path string) [][]string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows[1:]
}
