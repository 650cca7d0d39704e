package facts_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"companyscore/facts"
	"companyscore/internal/table"
	"companyscore/internal/test/golden"
	"companyscore/scoring"
)

// memory is a store of staged facts by domain.
type memory map[string]scoring.CompanyFacts

func (m memory) Stage(_ context.Context, _ string, layers []scoring.CompanyFacts) error {
	for _, c := range layers {
		m[c.Domain] = c
	}
	return nil
}

func (m memory) Commit(_ context.Context, i table.FactsImport) (table.FactsImport, error) {
	return i, nil
}

func (m memory) Discard(context.Context, table.FactsImport, error) error {
	clear(m)
	return nil
}

func (m memory) Recover(context.Context) error { return nil }

func (m memory) get(domain string) (scoring.CompanyFacts, error) {
	c, ok := m[domain]
	if !ok {
		return c, scoring.ErrNotFound
	}
	return c, nil
}

// importText imports a file with a name and a text.
func importText(t *testing.T, store facts.Store, name, text string) (facts.Report, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return facts.Import(t.Context(), store, path, facts.Options{})
}

func TestImportReportsFaultsAndKeepsRest(t *testing.T) {
	t.Parallel()
	store := make(memory)
	report, err := importText(t, store, "hostile.csv", strings.Join([]string{
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
		"bad12,ten,1999.5,Atlantis,,2150-01-01,,many,All at once",
		"also-good.com,,,Canada,,,,,\"Two\nlines\"",
		"last.com,1e3,,,,,,,Last",
	}, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	var faults []string
	for _, f := range report.Faults {
		faults = append(faults, f.Error())
	}
	golden.Compare(t, "testdata/hostile.golden", strings.Join(faults, "\n")+"\n")
	if report.Rows != 20 || report.Imported != 3 {
		t.Errorf("%d of %d rows imported, want 3 of 20", report.Imported, report.Rows)
	}
	good, err := store.get("good.com")
	if err != nil || *good.Employees != 10 || good.FoundedYear != 1999 || good.Country != "US" || !*good.Listed || good.SIC != 7372 ||
		good.Signals["open_roles"] != 5 {
		t.Errorf("good.com = %+v, %v", good, err)
	}
	if two, err := store.get("also-good.com"); err != nil || two.Country != "CA" || two.CompanyName != "Two\nlines" {
		t.Errorf("also-good.com = %+v, %v", two, err)
	}
}

func TestImportRefusesFilesItCannotUnderstand(t *testing.T) {
	t.Parallel()
	store := make(memory)
	f := func(name, text, want string) {
		t.Helper()
		if _, err := importText(t, store, name, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("import of %s %.30q = %v, want an error saying %q", name, text, err, want)
		}
	}
	f("a.csv", "", "empty")
	f("a.csv", "employees\n1\n", `no column "domain"`)
	f("a.csv", "domain,employes\nx.com,1\n", `"employees"`)
	f("a.csv", "domain,signal:open_role\nx.com,1\n", `"signal:open_roles"`)
	f("a.csv", "domain,domain\nx.com,y.com\n", "duplicate")
	f("a.parquet", "PAR1", "Parquet")
	f("a.xlsx", "", "use .csv")
	if _, err := facts.Import(t.Context(), store, "not/there.csv", facts.Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("import of a file that is not there = %v", err)
	}
}

func TestImportJSONL(t *testing.T) {
	t.Parallel()
	store := make(memory)
	report, err := importText(t, store, "a.jsonl",
		`{"domain":"one.com","employees":12.0,"categories":["SaaS","Cloud"],"listed":false,"city":null}

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
		faults = append(faults, f.Error())
	}
	golden.Compare(t, "testdata/hostile_jsonl.golden", strings.Join(faults, "\n")+"\n")
	if report.Rows != 17 || report.Imported != 3 {
		t.Errorf("%d of %d rows imported, want 3 of 17", report.Imported, report.Rows)
	}
	one, err := store.get("one.com")
	if err != nil || *one.Employees != 12 || len(one.Categories) != 2 || *one.Listed {
		t.Errorf("one.com = %+v, %v", one, err)
	}
	two, err := store.get("two.com")
	if err != nil || two.Signals["open_roles"] != 3 || len(two.Categories) != 2 || two.AsOf.Day() != 3 {
		t.Errorf("two.com = %+v, %v", two, err)
	}
}

func TestImportParquet(t *testing.T) {
	t.Parallel()
	store := make(memory)
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
	report, err := facts.Import(t.Context(), store, path, facts.Options{Progress: func(d, t int64) { done, total = d, t }})
	if err != nil || report.Imported != 2 || len(report.Faults) != 1 || report.Faults[0].Line != 2 {
		t.Fatalf("report = %+v, %v", report, err)
	}
	info, err := os.Stat(path)
	if err != nil || done != info.Size() || total != info.Size() {
		t.Errorf("progress ended at %d of %d, for a file of %d bytes, %v", done, total, info.Size(), err)
	}
	one, err := store.get("one.com")
	if err != nil || *one.Employees != 250 || *one.RevenueUSD != 5e7 || len(one.Categories) != 2 || !*one.Listed ||
		one.AsOf.Format("2006-01-02") != "2024-10-04" || one.Signals["open_roles"] != 1.5 {
		t.Errorf("one.com = %+v, %v", one, err)
	}
	two, err := store.get("two.com")
	if err != nil || two.Employees != nil || two.Listed != nil {
		t.Errorf("two.com = %+v, %v", two, err)
	}
}

// TestImportRefusesValuesOutsideTheirUnit imports the ends of each range, and values beyond them.
func TestImportRefusesValuesOutsideTheirUnit(t *testing.T) {
	t.Parallel()
	try := func(column, value, want string) {
		t.Helper()
		if strings.HasPrefix(want, "not ") {
			want = fmt.Sprintf("line 2, column 7 (%s): %q: %s", column, value, want)
		}
		report, err := facts.ImportCSV(t.Context(), make(memory), "a.csv", []byte("domain,"+column+"\na.com,"+value+"\n"), facts.Options{})
		var got string
		for _, fault := range report.Faults {
			got = fault.Error()
		}
		if err != nil || got != want || (report.Imported == 1) != (want == "") {
			t.Errorf("%s %s: %+v, %v, want %q", column, value, report, err, want)
		}
	}
	try("signal:technical_role_share", "1e308", "not from 0 to 1")
	try("signal:team_page_present", "17", "not a whole number from 0 to 1")
	try("signal:team_page_present", "0.5", "not a whole number from 0 to 1")
	try("signal:email_auth_maturity", "1e9", "not from 0 to 5")
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	ends := map[string]scoring.Range{
		"employees": {Max: 1e9}, "revenue_usd": {Max: 1e15}, "total_assets_usd": {Max: 1e15}, "ebitda_usd": {Min: -1e15, Max: 1e15},
		"market_cap_usd": {Max: 1e15},
		"pe_ratio":       {Min: -1e9, Max: 1e9}, "price_sales": {Max: 1e9}, "price_book": {Min: -1e9, Max: 1e9},
		"funding_total_usd": {Max: 1e15}, "funding_rounds": {Max: 1e9},
		"founders": {Max: 1e9}, "sic": {Min: 100, Max: 9999, Whole: true}, "founded_year": {Min: 1000, Max: 2100, Whole: true},
		"hiring_regions": {Max: 6, Whole: true},
	}
	for _, s := range scoring.Manifest() {
		ends["signal:"+s.ID] = s.Range()
	}
	for column, r := range ends {
		kind := "not from "
		if r.Whole {
			kind = "not a whole number from "
		}
		try(column, number(r.Min), "")
		try(column, number(r.Max), "")
		for _, beyond := range []float64{math.Nextafter(r.Min, math.Inf(-1)), math.Nextafter(r.Max, math.Inf(1)), -1e308, 1e308} {
			try(column, number(beyond), kind+r.String())
		}
		try(column, "Inf", "not a number")
	}
}

// TestFactsPageListsEveryColumn compares the tables of docs/facts.md with the program. -update writes
// them.
func TestFactsPageListsEveryColumn(t *testing.T) {
	t.Parallel()
	columns := golden.NewTable("column", "meaning")
	for _, c := range facts.Columns {
		columns.Row("`"+c.Name+"`", strings.ReplaceAll(c.Doc, "|", `\|`))
	}
	signals := golden.NewTable("column", "unit", "allowed", "signal")
	for _, s := range scoring.Manifest() {
		signals.Row("`signal:"+s.ID+"`", s.Unit, s.Range().String(), s.Name)
	}
	golden.CompareTables(t, "../docs/facts.md", map[string]string{"columns": columns.String(), "signals": signals.String()})
}

func TestOpenKeepsColumns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readAll(path); strings.HasSuffix(name, ".csv") &&
			(err == nil || !strings.Contains(err.Error(), `unknown column "grew"`)) {
			t.Errorf("%s without keep: %v, want unknown column", name, err)
		}
		rows, err := readAll(path, "grew", "status")
		if want := []string{"a.com 1.5 dead 2", "fault", "b.com   4"}; err != nil || strings.Join(rows, ", ") != strings.Join(want, ", ") {
			t.Errorf("%s = %q, %v, want %q", name, rows, err, want)
		}
	}
	f("a.csv", "domain,grew,status\na.com, 1.5 ,dead\nbad,2,\nb.com,,\n")
	f("a.jsonl", "\n"+`{"domain":"a.com","grew":1.5,"status":"dead"}`+"\n"+`{"domain":"bad","grew":2}`+"\n"+`{"domain":"b.com"}`+"\n")
}

func TestOpenKeepsColumnsOfParquet(t *testing.T) {
	t.Parallel()
	type row struct {
		Domain string  `parquet:"domain"`
		Grew   float64 `parquet:"grew"`
	}
	path := filepath.Join(t.TempDir(), "a.parquet")
	if err := parquet.WriteFile(path, []row{{"a.com", 1.5}, {"b.com", -2}}); err != nil {
		t.Fatal(err)
	}
	rows, err := readAll(path, "grew")
	if got := strings.Join(rows, ", "); err != nil || got != "a.com 1.5 1, b.com -2 2" {
		t.Errorf("rows = %q, %v", got, err)
	}
}

// readAll returns a text per row: the domain, the values of the columns to keep and the line.
func readAll(path string, keep ...string) ([]string, error) {
	open := facts.Open
	if keep != nil {
		open = func(path string) (*facts.Reader, error) { return facts.OpenWith(path, keep...) }
	}
	r, err := open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var rows []string
	for {
		c, err := r.Next()
		var fault facts.Fault
		switch {
		case errors.Is(err, io.EOF):
			for _, name := range keep {
				if !slices.Contains(r.Columns(), name) {
					return nil, fmt.Errorf("no column %s in %v", name, r.Columns())
				}
			}
			return rows, nil
		case errors.As(err, &fault):
			rows = append(rows, "fault")
		case err != nil:
			return nil, err
		default:
			row := []string{c.Domain}
			for _, name := range keep {
				row = append(row, r.Text(name))
			}
			line := r.Line()
			rows = append(rows, fmt.Sprint(strings.Join(row, " "), " ", line))
		}
	}
}
