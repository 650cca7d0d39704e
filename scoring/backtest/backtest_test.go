package backtest

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"companyscore/internal/test/golden"
	"companyscore/scoring"
)

var now = time.Date(2026, time.November, 22, 0, 0, 0, 0, time.UTC)

// file writes a file and returns its path.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// small is a file with all kinds of outcomes, an outcome that is no fact, two invalid rows and
// names that need escaping.
func small() string {
	var b strings.Builder
	b.WriteString("domain,company_name,employees,revenue_usd,status,market_cap_class,grew\n")
	classes := []string{"nano", "micro", "small", "mid", "large", "mega"}
	for i := range 24 {
		status := "operating"
		if i%4 == 0 {
			status = "dead"
		}
		class := ""
		if i%3 == 0 {
			class = classes[i%6]
		}
		fmt.Fprintf(&b, "c%d.com,<script>alert(%d)</script>,%d,%.0f,%s,%s,%d\n", i, i, 5*(i+1)*(i+1), 1e5*math.Pow(1.7, float64(i)), status,
			class, (i*7)%24-5)
	}
	b.WriteString("bad.com,,many,,,,\nodd.com,,,,,,fast\n")
	return b.String()
}

func TestReportOfASmallFile(t *testing.T) {
	t.Parallel()
	path := file(t, "small.csv", small())
	r, err := Run(t.Context(), Config{Path: path, Outcomes: []string{"revenue_usd", "market_cap_class", "status", "grew"}, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	if r.Rows != 26 || r.Companies != 24 || r.Invalid != 2 || len(r.Faults) != 2 || r.Faults[1].Line != 27 || r.Faults[1].Field != "grew" {
		t.Errorf("%d rows, %d companies, %d invalid: %v", r.Rows, r.Companies, r.Invalid, r.Faults)
	}
	r.File = "small.csv"
	var text, page bytes.Buffer
	if err := errors.Join(r.Text(&text), r.HTML(&page)); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "testdata/small.txt", text.String())
	checkPage(t, page.String())
}

// checkPage checks that a page is well-formed, has all plots, and neither scripts nor requests.
func checkPage(t *testing.T, page string) {
	t.Helper()
	plots := 0
	d := xml.NewDecoder(strings.NewReader(page))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the page is not well-formed: %v", err)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		switch start.Name.Local {
		case "svg":
			plots++
		case "script", "link", "img", "iframe", "object", "embed", "image", "use", "a", "base", "form":
			t.Errorf("the page has an element %s", start.Name.Local)
		}
		for _, a := range start.Attr {
			if strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "src" || a.Name.Local == "href" {
				t.Errorf("%s has an attribute %s", start.Name.Local, a.Name.Local)
			}
		}
	}
	// Histogram, two for each fact, one for the other outcome, ROC twice, cliffs, coverage.
	if want := 1 + 2 + 2 + 2 + 1 + 2 + 1 + 1; plots != want {
		t.Errorf("%d plots, want %d", plots, want)
	}
	if found := regexp.MustCompile(`(?i:https?:|url\(|@import)|NaN|Inf\b`).FindString(page); found != "" {
		t.Errorf("the page contains %q", found)
	}
}

func TestPageEscapesColumnsAndValues(t *testing.T) {
	t.Parallel()
	column := `</svg><script>alert("x")</script>&`
	path := file(t, "a.jsonl", "")
	var b strings.Builder
	for i := range 8 {
		fmt.Fprintf(&b, `{"domain":"c%d.com","employees":%d,"</svg><script>alert(\"x\")</script>&":"<b>%d"}`+"\n", i, i*100, i%2)
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Run(t.Context(), Config{Path: path, Outcomes: []string{column}, Good: []string{"<b>1"}, Bad: []string{"<b>0"}, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	if err := r.HTML(&page); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(page.String(), "<script") || strings.Contains(page.String(), "<b>") ||
		!strings.Contains(page.String(), "&lt;script") {
		t.Error("the page does not escape the column or its values")
	}
}

func TestBadInputIsNamed(t *testing.T) {
	t.Parallel()
	f := func(cfg Config, name, text, want string) {
		t.Helper()
		cfg.Path, cfg.Now = file(t, name, text), now
		if _, err := Run(t.Context(), cfg); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q = %v, want an error of the input with %q", text, err, want)
		}
	}
	revenue, status := Config{Outcomes: []string{"revenue_usd"}}, Config{Outcomes: []string{"status"}}
	f(Config{}, "a.csv", "domain\na.com\n", "no outcome column")
	f(revenue, "a.csv", "domain,employees\na.com,1\n", `no column "revenue_usd"; it has domain, employees`)
	f(revenue, "a.csv", "domain,employees\n", `no column "revenue_usd"`)
	f(revenue, "a.jsonl", `{"domain":"a.com","employees":1}`, `no column "revenue_usd"; it has domain, employees`)
	f(revenue, "a.csv", "domain,revenue_usd\n", "no usable rows")
	f(revenue, "a.csv", "domain,revenue_usd\na.com,\nb.com,\n", "no usable rows: no valid row has a value")
	f(revenue, "a.csv", "domain,revenue_usd\na.com,1\nb.com,2\nc.com,3\n", "too few usable rows: 3")
	f(revenue, "a.csv", "domain,revenue_usd\na.com,7\nb.com,7\nc.com,7\nd.com,7\n", "one value only")
	f(revenue, "a.csv", "domain,revenue_usd\na.com,-1\n", "no usable rows: ")
	f(status, "a.csv", "domain,status\na.com,operating\nb.com,Operating\n",
		"one class only: 2 companies are good (operating) and none is bad (dead)")
	f(status, "a.csv", "domain,status\na.com,dead\n", "one class only: 1 companies are bad")
	f(status, "a.csv", "domain,status\na.com,fine\nb.com,ill\n", `values such as "fine", "ill"`)
	f(Config{Outcomes: []string{"market_cap_class"}}, "a.csv", "domain,market_cap_class\na.com,mid\nb.com,mid\n",
		"one class only: all 2 companies are mid")
	f(Config{Outcomes: []string{"exit"}}, "a.csv", "domain,exit\na.com,ipo\nb.com,sold\n",
		`values such as "ipo", "sold": name the good and the bad ones`)
	f(Config{Outcomes: []string{"exit"}, Good: []string{"ipo"}}, "a.csv", "domain,exit\na.com,ipo\n", "both good and bad")
	f(Config{Outcomes: []string{"exit"}, Good: []string{"ipo"}, Bad: []string{"IPO"}}, "a.csv", "domain,exit\na.com,ipo\n",
		"both good and bad")
	f(Config{Outcomes: []string{"exit", "status"}, Good: []string{"a"}, Bad: []string{"b"}}, "a.csv", "domain,exit,status\n",
		"single outcome")
	f(Config{Outcomes: []string{"exit", "exit"}}, "a.csv", "domain,exit\n", "named twice")
	f(revenue, "a.xlsx", "", "use .csv")
	if _, err := Run(t.Context(), Config{Path: "not/there.csv", Outcomes: []string{"exit"}, Now: now}); !errors.Is(err, ErrInput) ||
		!errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestWithheldScoreDoesNotSeeOutcome(t *testing.T) {
	t.Parallel()
	number := func(x float64) *float64 { return &x }
	// Market value over price/sales implies the revenue.
	company := scoring.CompanyFacts{Domain: "a.com", RevenueUSD: number(1e6), MarketCapUSD: number(1e12), PriceSales: number(2),
		Signals: map[string]float64{"revenue_latest_usd": 5e11}}
	revenue, _ := factNamed("revenue_usd")
	small := scoreWithheld(company, revenue, now)
	company.RevenueUSD, company.Signals["revenue_latest_usd"] = number(1e12), 1e12
	if large := scoreWithheld(company, revenue, now); large.Composite != small.Composite {
		t.Errorf("composites without revenue differ: %v and %v", small.Composite, large.Composite)
	}
	if given := score(company, now, nil); given.Composite <= small.Composite {
		t.Errorf("composite with revenue = %v, without = %v", given.Composite, small.Composite)
	}
	if len(company.Signals) != 1 {
		t.Error("the facts of the caller were changed")
	}
}

// TestExamplesMeetTheLimits runs the back-tests of `make backtest`.
func TestExamplesMeetTheLimits(t *testing.T) {
	t.Parallel()
	f := func(name, limits string, now time.Time, outcomes ...string) {
		t.Helper()
		bounds, err := ReadLimits("../../examples/" + limits)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Run(t.Context(), Config{Path: "../../examples/" + name, Outcomes: outcomes, Now: now})
		if err != nil {
			t.Fatal(err)
		}
		checks, err := r.Check(bounds)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range checks {
			if !c.OK {
				t.Errorf("%s: %s", name, c)
			}
		}
		if r.Invalid > 0 || len(r.Ignored) > 0 {
			t.Errorf("%s: %d invalid rows, ignored columns %v", name, r.Invalid, r.Ignored)
		}
	}
	f("companies.csv", "limits.json", now, "revenue_usd", "market_cap_usd", "status")
	f("statements.csv", "statements-limits.json", time.Date(2010, time.July, 1, 0, 0, 0, 0, time.UTC), "revenue_usd")
}

func TestLimitsBoundFigures(t *testing.T) {
	t.Parallel()
	r := &Report{TiesPct: 20, GradesUsed: 4, Outcomes: []Outcome{{Column: "status", Kind: Classes}}}
	read := func(text string) (Limits, error) { return ReadLimits(file(t, "limits.json", text)) }
	limits, err := read(`{"ties_pct":{"max":20},"grades_used":{"min":5},"coverage_pct":{"min":1},"status.auc":{"min":0}}`)
	if err != nil {
		t.Fatal(err)
	}
	checks, err := r.Check(limits)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, c := range checks {
		lines = append(lines, c.String())
	}
	want := "FAIL coverage_pct unknown, at least 1\nFAIL grades_used 4.000, at least 5\nFAIL status.auc unknown, at least 0\n" +
		"ok   ties_pct 20.000, at most 20"
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("checks:\n%s\nwant:\n%s", got, want)
	}
	if _, err := r.Check(Limits{"beauty": {}}); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), `"beauty"`) {
		t.Errorf("limit of an unknown figure: %v", err)
	}
	for text, want := range map[string]string{"{}": "none", "[]": "read limits", `{"ties_pct":{}}`: "neither",
		`{"ties_pct":{"least":1}}`: "least", `{"ties_pct":{"max":1}} 2`: "follows"} {
		if _, err := read(text); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), want) {
			t.Errorf("limits %s: %v, want %q", text, err, want)
		}
	}
}

func TestMonotoneFindsLowerScores(t *testing.T) {
	t.Parallel()
	employees, _ := factNamed("employees")
	sample := []scoring.CompanyFacts{{Domain: "a.com"}, {Domain: "b.com"}}
	good, err := raise(t.Context(), employees, sample, now)
	if want := (Monotone{Fact: "employees", Steps: 14}); err != nil || good != want {
		t.Errorf("employees: %+v, %v, want %+v", good, err, want)
	}
	falling := employees
	falling.grid = []float64{1e6, 1e4, 1e4, 1}
	bad, err := raise(t.Context(), falling, sample, now)
	if err != nil || bad.Steps != 6 || bad.Lowered != 4 || bad.Worst <= 0 || bad.Domain != "a.com" {
		t.Errorf("falling employees: %+v, %v", bad, err)
	}
}
