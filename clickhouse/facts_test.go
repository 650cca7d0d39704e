package clickhouse_test

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"companyscore/clickhouse"
	"companyscore/internal/testenv"
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
{"domain":"bad1.com"} {"domain":"bad2.com"}
["bad3.com"]
{"domain":"bad4.com","city":{"name":"Rome"}}
{"domain":"bad5.com","categories":[["a"]]}
{"domain":"bad6.com","revenue":1}
{"domain":"bad7.com","domain":"bad8.com"}
{"domain":"bad9.com","employees":"many"}
{"domain":"bad10.com"
{"domain":"bad11.com","city":`+strings.Repeat(" ", 1<<20)+`"x"}
{"employees":1}
null
{"domain":"two.com"}
{"domain":"bad12.com","city":"`+"\xff"+`"}
{"domain":"bad13.com",1:2}
{"domain":"three.com"}`)
	if err != nil {
		t.Fatal(err)
	}
	var faults []string
	for _, f := range report.Faults {
		faults = append(faults, f.String())
	}
	golden(t, "hostile_jsonl.golden", strings.Join(faults, "\n")+"\n")
	if report.Rows != 17 || report.Imported != 3 {
		t.Errorf("%d of %d rows imported, want 3 of 17", report.Imported, report.Rows)
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
	var done, total int64
	report, err := db.ImportFacts(t.Context(), path, clickhouse.ImportOptions{Progress: func(d, t int64) { done, total = d, t }})
	if err != nil || report.Imported != 2 || len(report.Faults) != 1 || report.Faults[0].Line != 2 {
		t.Fatalf("report = %+v, %v", report, err)
	}
	info, err := os.Stat(path)
	if err != nil || done != info.Size() || total != info.Size() {
		t.Errorf("progress ended at %d of %d, for a file of %d bytes, %v", done, total, info.Size(), err)
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

// TestImportParquetOfClickHouse reads what another writer makes of the types that
// people keep such values in.
func TestImportParquetOfClickHouse(t *testing.T) {
	t.Parallel()
	url := testenv.ClickHouse(t)
	db := openURL(t, url)
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	export := func(query string) string {
		t.Helper()
		res, err := http.Post(strings.TrimSuffix(url, db.Database()), "", strings.NewReader(query+" FORMAT Parquet")) //nolint:noctx // a test on loopback
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		data, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %v %s", query, err, data)
		}
		path := filepath.Join(t.TempDir(), "export.parquet")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	path := export(`SELECT
		concat('company-', toString(number), '.com') AS domain,
		if(number = 2, NULL, toDecimal64('-1234567.89', 2)) AS ebitda_usd,
		toDecimal128('123456789012345678.5', 1) AS revenue_usd,
		toUInt64(18446744073709551615) AS market_cap_usd,
		toInt16(-5) AS pe_ratio, toUInt8(200) AS employees, toFloat32(0.1) AS price_sales,
		toDate32('1969-12-31') AS as_of, toUInt16(1850 + number) AS founded_year,
		['a', 'b', ''] AS categories, number = 1 AS listed,
		toFixedString('US', 2) AS country, toLowCardinality('Rome') AS city,
		CAST('dead', 'Enum8(\'dead\' = 1)') AS status, toFloat64(nan) AS ` + "`signal:open_roles`" + `
		FROM numbers(3) SETTINGS output_format_parquet_row_group_size = 2`)
	report, err := db.ImportFacts(t.Context(), path, clickhouse.ImportOptions{})
	if err != nil || report.Rows != 3 || len(report.Faults) != 3 || report.Faults[2].Line != 3 || report.Faults[2].Field != "signal:open_roles" {
		t.Fatalf("import = %+v, %v; want three rows at fault, as their signal is not a number", report, err)
	}
	path = export(`SELECT
		concat('company-', toString(number), '.com') AS domain,
		if(number = 2, NULL, toDecimal64('-1234567.89', 2)) AS ebitda_usd,
		toDecimal128('123456789012345678.5', 1) AS revenue_usd,
		toUInt64(18446744073709551615) AS market_cap_usd,
		toInt16(-5) AS pe_ratio, toUInt8(200) AS employees, toFloat32(0.1) AS price_sales,
		toDateTime64('1969-12-31 23:59:59.500', 3, 'UTC') AS as_of, toUInt16(1850 + number) AS founded_year,
		['a', 'b', ''] AS categories, number = 1 AS listed,
		toFixedString('US', 2) AS country, toLowCardinality('Rome') AS city,
		CAST('dead', 'Enum8(\'dead\' = 1)') AS status
		FROM numbers(3) SETTINGS output_format_parquet_row_group_size = 2`)
	report, err = db.ImportFacts(t.Context(), path, clickhouse.ImportOptions{})
	if err != nil || report.Rows != 3 || report.Imported != 3 {
		t.Fatalf("import = %+v, %v", report, err)
	}
	number := func(v float64) *float64 { return &v }
	yes := true
	got, err := clickhouse.NewFacts(db).Get(t.Context(), "company-1.com")
	want := scoring.CompanyFacts{
		Domain: "company-1.com", EBITDAUSD: number(-1234567.89), RevenueUSD: number(123456789012345678.5), MarketCapUSD: number(18446744073709551615),
		PERatio: number(-5), Employees: number(200), PriceSales: number(0.1), AsOf: time.Date(1969, 12, 31, 0, 0, 0, 0, time.UTC), FoundedYear: 1851,
		Categories: []string{"a", "b"}, Listed: &yes, Country: "US", City: "Rome", Status: "dead", Signals: map[string]float64{},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("facts: %v\n%s", err, diff)
	}
	if got, err := clickhouse.NewFacts(db).Get(t.Context(), "company-2.com"); err != nil || got.EBITDAUSD != nil {
		t.Errorf("facts without EBITDA = %+v, %v", got, err)
	}
	for query, want := range map[string]string{
		"SELECT 'a.com' AS domain, map('open_roles', 1) AS city": "structure or map",
		"SELECT 'a.com' AS domain, 1 AS employes":                `"employees"`,
		"SELECT 1 AS employees":                                  `no column "domain"`,
	} {
		if _, err := db.ImportFacts(t.Context(), export(query), clickhouse.ImportOptions{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error saying %s", query, err, want)
		}
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
others go in, and the command exits 1. A column of CSV or Parquet that is not listed
here stops the import before anything is written; in JSONL, where each line names its
own, it is a fault of its line.

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
