package clickhouse_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"companyscore/clickhouse"
	"companyscore/scoring"
)

var update = flag.Bool("update", false, "write golden files instead of comparing with them")

// importText imports a file of that name and text.
func importText(t *testing.T, db *clickhouse.DB, name, text string) (clickhouse.ImportReport, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return db.ImportFacts(t.Context(), path, clickhouse.ImportOptions{})
}

func TestImportRealCompanies(t *testing.T) {
	t.Parallel()
	db := open(t)
	var done, total int64
	for range 2 { // importing again replaces
		report, err := db.ImportFacts(t.Context(), "../examples/companies.csv", clickhouse.ImportOptions{
			Progress: func(d, t int64) { done, total = d, t },
		})
		if err != nil || report.Rows != 880 || report.Imported != 880 || len(report.Faults) != 0 {
			t.Fatalf("import = %+v, %v; want 880 rows and no fault", report, err)
		}
	}
	if done != total || total == 0 {
		t.Errorf("progress ended at %d of %d bytes", done, total)
	}
	facts := clickhouse.NewFacts(db)
	got, err := facts.Get(t.Context(), "zoetis.com")
	if err != nil {
		t.Fatal(err)
	}
	if got.CompanyName != "Zoetis" || got.Country != "US" || *got.Employees != 13800 || *got.RevenueUSD != 9.3e9 || *got.PriceSales != 3.3721652 ||
		got.PriceBook != nil || got.FoundedYear != 0 || got.Listed != nil || got.AsOf.Format("2006-01-02") != "2025-06-01" {
		t.Errorf("facts of zoetis.com = %+v", got)
	}
	if _, err := facts.Get(t.Context(), "unknown.com"); !errors.Is(err, scoring.ErrNotFound) {
		t.Errorf("facts of an unknown company: %v, want ErrNotFound", err)
	}
}

func TestImportReportsEachFaultAndTakesTheRest(t *testing.T) {
	t.Parallel()
	db := open(t)
	report, err := importText(t, db, "hostile.csv", strings.Join([]string{
		"\uFEFFdomain,employees,founded_year,country,listed,as_of,sic,signal:open_roles,company_name",
		"good.com,10,1999,us,TRUE,2025-01-31,7372,5,Good",
		",10,,,,,,,No domain",
		"127.0.0.1,,,,,,,,Address",
		"bad1.com,ten,,,,,,,Word",
		"bad2.com,-1,,,,,,,Negative",
		"bad3.com,NaN,,,,,,,Not a number",
		"bad4.com,,1999.5,,,,,,Half a year",
		"bad5.com,,3000,,,,,,Future",
		"bad6.com,,,Atlantis,,,,,Nowhere",
		"bad7.com,,,,perhaps,,,,Perhaps",
		"bad8.com,,,,,31.01.2025,,,Other date",
		"bad9.com,,,,,,99999,,No such code",
		"bad10.com,,,,,,,many,Signal",
		"short.com,1",
		"www.Good.com,11,,,,,,,Twice",
		"quote.com,\"1\"x,,,,,,,Quote",
		"bad11.com,,,,,,,," + strings.Repeat("x", 5000),
		"also-good.com,,,Canada,,,,,\"Two\nlines\"",
		"last.com,1e3,,,,,,,Last",
	}, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	var faults []string
	for _, f := range report.Faults {
		faults = append(faults, f.String())
	}
	golden(t, "hostile.golden", strings.Join(faults, "\n")+"\n")
	if report.Rows != 19 || report.Imported != 3 {
		t.Errorf("%d of %d rows imported, want 3 of 19", report.Imported, report.Rows)
	}
	facts := clickhouse.NewFacts(db)
	good, err := facts.Get(t.Context(), "good.com")
	if err != nil || *good.Employees != 10 || good.FoundedYear != 1999 || good.Country != "US" || !*good.Listed || good.SIC != 7372 || good.Signals["open_roles"] != 5 {
		t.Errorf("good.com = %+v, %v", good, err)
	}
	if two, err := facts.Get(t.Context(), "also-good.com"); err != nil || two.Country != "CA" || two.CompanyName != "Two\nlines" {
		t.Errorf("also-good.com = %+v, %v", two, err)
	}
}

func TestImportRefusesFilesItCannotUnderstand(t *testing.T) {
	t.Parallel()
	db := open(t)
	f := func(name, text, want string) {
		t.Helper()
		if _, err := importText(t, db, name, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("import of %s %.30q = %v, want an error saying %q", name, text, err, want)
		}
	}
	f("a.csv", "", "empty")
	f("a.csv", "employees\n1\n", `no column "domain"`)
	f("a.csv", "domain,employes\nx.com,1\n", `"employees"`)
	f("a.csv", "domain,signal:open_role\nx.com,1\n", `"signal:open_roles"`)
	f("a.csv", "domain,domain\nx.com,y.com\n", "twice")
	f("a.jsonl", `{"domain":"x.com","revenue":1}`, `"revenue_usd"`)
	f("a.parquet", "PAR1", "Parquet")
	f("a.xlsx", "", "use .csv")
	if _, err := db.ImportFacts(t.Context(), "/nonexistent.csv", clickhouse.ImportOptions{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("import of a file that is not there = %v", err)
	}
}

func TestImportJSONL(t *testing.T) {
	t.Parallel()
	db := open(t)
	report, err := importText(t, db, "a.jsonl", `{"domain":"one.com","employees":12.0,"categories":["SaaS","Cloud"],"listed":false,"city":null}

{"domain":"two.com","categories":"Retail|Shop","signal:open_roles":3,"as_of":"2025-02-03"}
{"domain":"three.com"} {"domain":"four.com"}
["five.com"]
{"domain":"six.com","city":{"name":"Rome"}}
`)
	if err != nil {
		t.Fatal(err)
	}
	if report.Imported != 2 || len(report.Faults) != 3 || report.Faults[0].Line != 4 || report.Faults[1].Line != 5 || report.Faults[2].Field != "city" {
		t.Errorf("report = %+v", report)
	}
	facts := clickhouse.NewFacts(db)
	one, err := facts.Get(t.Context(), "one.com")
	if err != nil || *one.Employees != 12 || len(one.Categories) != 2 || *one.Listed {
		t.Errorf("one.com = %+v, %v", one, err)
	}
	two, err := facts.Get(t.Context(), "two.com")
	if err != nil || two.Signals["open_roles"] != 3 || len(two.Categories) != 2 || two.AsOf.Day() != 3 {
		t.Errorf("two.com = %+v, %v", two, err)
	}
}

func TestImportParquet(t *testing.T) {
	t.Parallel()
	db := open(t)
	type row struct {
		Domain     string   `parquet:"domain"`
		Employees  *int64   `parquet:"employees,optional"`
		Revenue    float64  `parquet:"revenue_usd"`
		Categories []string `parquet:"categories,list"`
		Listed     *bool    `parquet:"listed,optional"`
		AsOf       int32    `parquet:"as_of,date"`
		OpenRoles  float32  `parquet:"signal:open_roles"`
	}
	n, yes := int64(250), true
	path := filepath.Join(t.TempDir(), "a.parquet")
	err := parquet.WriteFile(path, []row{
		{"one.com", &n, 5e7, []string{"SaaS", "Cloud"}, &yes, 20_000, 1.5},
		{"not a domain", nil, 1, nil, nil, 20_000, 0},
		{"two.com", nil, 1, nil, nil, 20_001, 0},
	})
	if err != nil {
		t.Fatal(err)
	}
	report, err := db.ImportFacts(t.Context(), path, clickhouse.ImportOptions{})
	if err != nil || report.Imported != 2 || len(report.Faults) != 1 || report.Faults[0].Line != 2 {
		t.Fatalf("report = %+v, %v", report, err)
	}
	one, err := clickhouse.NewFacts(db).Get(t.Context(), "one.com")
	if err != nil || *one.Employees != 250 || *one.RevenueUSD != 5e7 || len(one.Categories) != 2 || !*one.Listed ||
		one.AsOf.Format("2006-01-02") != "2024-10-04" || one.Signals["open_roles"] != 1.5 {
		t.Errorf("one.com = %+v, %v", one, err)
	}
	two, err := clickhouse.NewFacts(db).Get(t.Context(), "two.com")
	if err != nil || two.Employees != nil || two.Listed != nil {
		t.Errorf("two.com = %+v, %v", two, err)
	}
}

func TestFactsDocumentListsEveryColumn(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(`# Company facts

What you already know about companies can be imported and is used the next time
they are scored:

    companyscore facts import companies.csv

The file is CSV (the first line names the columns), JSONL (one object to a line) or
Parquet. The columns may stand in any order, and all but the domain may be left
out. An empty or missing value means that the fact is not known. Importing a company
again replaces everything that was imported of it before.

A row with a fault stays out and is reported with its line, column and reason; the
others go in, and the command exits 1. A column that is not listed here stops the
import before anything is written.

What is derived from these columns is no more than follows from them: the net margin
from price_sales and pe_ratio, the age from the founding year, the listing from a
market capitalisation or a price ratio. Every other signal stays missing until
somebody knows it, and the completeness of the score says so.

| column | meaning |
|---|---|
`)
	for _, c := range clickhouse.FactColumns {
		fmt.Fprintf(&b, "| `%s` | %s |\n", c.Name, strings.ReplaceAll(c.Doc, "|", `\|`))
	}
	b.WriteString("\nRaw values of signals can be given directly, and win over what is derived:\n\n| column | unit | signal |\n|---|---|---|\n")
	for _, s := range scoring.Manifest() {
		fmt.Fprintf(&b, "| `signal:%s` | %s | %s |\n", s.ID, s.Unit, s.Name)
	}
	compare(t, "../docs/facts.md", b.String())
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	compare(t, filepath.Join("testdata", name), got)
}

// compare compares a text with a file, or writes the file with -update.
func compare(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is not up to date (-file +now), -update writes it:\n%s", path, diff)
	}
}
