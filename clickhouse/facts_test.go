package clickhouse_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"companyscore/clickhouse"
	"companyscore/facts"
	"companyscore/internal/test/stores"
	"companyscore/scoring"
)

func TestImportRealCompanies(t *testing.T) {
	t.Parallel()
	stored := clickhouse.NewFacts(open(t))
	var done, total int64
	for range 2 { // importing again replaces
		report, err := facts.Import(t.Context(), stored, "../examples/companies.csv",
			facts.Options{Progress: func(d, t int64) { done, total = d, t }})
		if err != nil || report.Rows != 880 || report.Imported != 880 || len(report.Faults) != 0 {
			t.Fatalf("import = %+v, %v; want 880 rows and no fault", report, err)
		}
	}
	if done != total || total == 0 {
		t.Errorf("progress ended at %d of %d bytes", done, total)
	}
	got := onlyLayer(t, stored, "zoetis.com")
	if got.CompanyName != "Zoetis" || got.Country != "US" || *got.Employees != 13800 || *got.RevenueUSD != 9.3e9 ||
		*got.PriceSales != 3.3721652 ||
		got.PriceBook != nil || got.FoundedYear != 0 || got.Listed != nil || got.AsOf.Format("2006-01-02") != "2025-06-01" {
		t.Errorf("facts of zoetis.com = %+v", got)
	}
	if layers, err := stored.Get(t.Context(), "unknown.com"); err != nil || len(layers) != 0 {
		t.Errorf("facts of an unknown company: %v, %v", layers, err)
	}
}

// onlyLayer returns the facts of a company with one origin.
func onlyLayer(t *testing.T, stored *clickhouse.Facts, domain string) scoring.CompanyFacts {
	t.Helper()
	layers, err := stored.Get(t.Context(), domain)
	if err != nil || len(layers) != 1 {
		t.Fatalf("facts of %s: %+v, %v; want one layer", domain, layers, err)
	}
	return layers[0]
}

// TestImportParquetOfClickHouse reads Parquet files written by ClickHouse with common
// types.
func TestImportParquetOfClickHouse(t *testing.T) {
	t.Parallel()
	url := stores.ClickHouse(t)
	db := openURL(t, url)
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	stored := clickhouse.NewFacts(db)
	export := func(query string) string {
		t.Helper()
		//nolint:noctx // a test on loopback
		res, err := http.Post(strings.TrimSuffix(url, db.Public()), "", strings.NewReader(query+" FORMAT Parquet"))
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
		toDecimal128('12345678901234.5', 1) AS revenue_usd,
		toUInt64(999999999999999) AS market_cap_usd,
		toInt16(-5) AS pe_ratio, toUInt8(200) AS employees, toFloat32(0.1) AS price_sales,
		toDate32('1969-12-31') AS as_of, toUInt16(1850 + number) AS founded_year,
		['a', 'b', ''] AS categories, number = 1 AS listed,
		toFixedString('US', 2) AS country, toLowCardinality('Rome') AS city,
		CAST('dead', 'Enum8(\'dead\' = 1)') AS status, toFloat64(nan) AS ` + "`signal:open_roles`" + `
		FROM numbers(3) SETTINGS output_format_parquet_row_group_size = 2`)
	report, err := facts.Import(t.Context(), stored, path, facts.Options{})
	if err != nil || report.Rows != 3 || len(report.Faults) != 3 || report.Faults[2].Line != 3 ||
		report.Faults[2].Field != "signal:open_roles" {
		t.Fatalf("import = %+v, %v; want three rows at fault, as their signal is not a number", report, err)
	}
	path = export(`SELECT
		concat('company-', toString(number), '.com') AS domain,
		if(number = 2, NULL, toDecimal64('-1234567.89', 2)) AS ebitda_usd,
		toDecimal128('12345678901234.5', 1) AS revenue_usd,
		toUInt64(999999999999999) AS market_cap_usd,
		toInt16(-5) AS pe_ratio, toUInt8(200) AS employees, toFloat32(0.1) AS price_sales,
		toDateTime64('1969-12-31 23:59:59.500', 3, 'UTC') AS as_of, toUInt16(1850 + number) AS founded_year,
		['a', 'b', ''] AS categories, number = 1 AS listed,
		toFixedString('US', 2) AS country, toLowCardinality('Rome') AS city,
		CAST('dead', 'Enum8(\'dead\' = 1)') AS status
		FROM numbers(3) SETTINGS output_format_parquet_row_group_size = 2`)
	report, err = facts.Import(t.Context(), stored, path, facts.Options{})
	if err != nil || report.Rows != 3 || report.Imported != 3 {
		t.Fatalf("import = %+v, %v", report, err)
	}
	number := func(v float64) *float64 { return &v }
	yes := true
	got := onlyLayer(t, stored, "company-1.com")
	want := scoring.CompanyFacts{
		Domain: "company-1.com", Origin: "export", EBITDAUSD: number(-1234567.89), RevenueUSD: number(12345678901234.5),
		MarketCapUSD: number(999999999999999),
		PERatio:      number(-5), Employees: number(200), PriceSales: number(0.1), AsOf: time.Date(1969, 12, 31, 0, 0, 0, 0, time.UTC),
		FoundedYear: 1851,
		Categories:  []string{"a", "b"}, Listed: &yes, Country: "US", City: "Rome", Status: "dead", Signals: map[string]float64{},
		AtLeast: []string{},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("facts:\n%s", diff)
	}
	if got := onlyLayer(t, stored, "company-2.com"); got.EBITDAUSD != nil {
		t.Errorf("facts without EBITDA = %+v", got)
	}
	for query, want := range map[string]string{
		"SELECT 'a.com' AS domain, map('open_roles', 1) AS city": "structure or map",
		"SELECT 'a.com' AS domain, 1 AS employes":                `"employees"`,
		"SELECT 1 AS employees":                                  `no column "domain"`,
	} {
		if _, err := facts.Import(t.Context(), stored, export(query), facts.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error saying %s", query, err, want)
		}
	}
}
