package clickhouse_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"companyscore/clickhouse"
	"companyscore/facts"
	"companyscore/internal/table"
	"companyscore/scoring"
	"companyscore/scoring/source"
)

// importRows imports a CSV file with a name, which is its origin.
func importRows(t *testing.T, store facts.Store, name, text string) facts.Report {
	t.Helper()
	report, err := facts.ImportCSV(t.Context(), store, name, []byte(text), facts.Options{})
	if err != nil || len(report.Faults) > 0 {
		t.Fatalf("import %s: %+v, %v", name, report, err)
	}
	return report
}

func factsScore(t *testing.T, store *clickhouse.Facts, domain string) scoring.Record {
	t.Helper()
	layers, err := store.Get(t.Context(), domain)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	got := source.FromFacts(layers, scoring.Preference{Now: at})
	rec, err := scoring.Score(scoring.Input{Domain: "a.com", Now: at, Observations: got.Observations, Answered: []string{"facts"},
		Identity: source.NewCompany(got.Claims...).Identity(got.Site, 0)})
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// permutations returns all orders of the numbers below n.
func permutations(n int) (all [][]int) {
	if n == 0 {
		return [][]int{nil}
	}
	for _, shorter := range permutations(n - 1) {
		for i := range n {
			all = append(all, slices.Insert(slices.Clone(shorter), i, n-1))
		}
	}
	return all
}

// The order in which origins are imported does not change a score. A later import of an origin replaces
// what that origin said, and nothing else.
func TestOrderOfImportsDoesNotMatter(t *testing.T) {
	t.Parallel()
	store := clickhouse.NewFacts(open(t))
	origins := []struct{ name, columns, values string }{
		{"crm.csv", "company_name,employees,country,as_of", "Acme,120,US,2026-01-05"},
		{"register.csv", "company_name,employees,founded_year,as_of", "ACME Inc,95,1999,2024-06-30"},
		{"list.csv", "company_name,revenue_usd,industry,as_of", "Acme Corp,5000000,Software,2026-01-05"},
		{"old.csv", "revenue_usd,employees,status,as_of", "900,3,dead,2012-01-01"},
	}
	orders := permutations(len(origins))
	domain := func(n int) string { return fmt.Sprintf("order-%d.com", n) }
	for step := range origins {
		for i, o := range origins {
			before, after := "domain,employees,as_of\n", "domain,"+o.columns+"\n"
			for n, order := range orders {
				if order[step] == i {
					before += domain(n) + ",7,2026-02-01\n"
					after += domain(n) + "," + o.values + "\n"
				}
			}
			importRows(t, store, o.name, before)
			importRows(t, store, o.name, after)
		}
	}
	want := factsScore(t, store, domain(0))
	if want.CompanyName != "Acme" || want.Signals[0].Raw != 120 || want.Signals[0].Origin != "crm" {
		t.Fatalf("%s with %+v", want.CompanyName, want.Signals[0])
	}
	for n, order := range orders {
		if got := factsScore(t, store, domain(n)); !reflect.DeepEqual(got, want) {
			t.Fatalf("order %v gives another score", order)
		}
	}
}

func TestRepeatedImportChangesNothing(t *testing.T) {
	t.Parallel()
	db := open(t)
	store := clickhouse.NewFacts(db)
	const rows = "domain,employees,signal:open_roles,signal:team_page_present\na.com,5,3,1\nb.com,>=6,,\n"
	if report := importRows(t, store, "crm.csv", rows); report.Imported != 2 || report.Changed != 2 {
		t.Errorf("first import: %+v", report)
	}
	last := column(t, db, "SELECT toString(max(imported_at)) FROM company_facts")
	if report := importRows(t, store, "crm.csv", rows); report.Imported != 2 || report.Changed != 0 {
		t.Errorf("second import: %+v", report)
	}
	if again := column(t, db, "SELECT toString(max(imported_at)) FROM company_facts"); !slices.Equal(last, again) {
		t.Errorf("facts changed at %s, then at %s", last, again)
	}
	if left := column(t, db, "SELECT toString(count()) FROM facts_staged"); !slices.Equal(left, []string{"0"}) {
		t.Errorf("%s rows are staged", left)
	}
}

func TestOriginsSurviveEachOther(t *testing.T) {
	t.Parallel()
	store := clickhouse.NewFacts(open(t))
	importRows(t, store, "one.csv", "domain,employees\na.com,5\nb.com,6\n")
	importRows(t, store, "two.csv", "domain,revenue_usd\na.com,7\n")
	importRows(t, store, "one.csv", "domain,employees\na.com,8\n")
	said := func(want string) {
		t.Helper()
		found, err := store.GetMany(t.Context(), []string{"a.com", "b.com"})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, layer := range slices.Concat(found["a.com"], found["b.com"]) {
			for _, v := range []*float64{layer.Employees, layer.RevenueUSD} {
				if v != nil {
					got = append(got, fmt.Sprintf("%s %s %v", layer.Domain, layer.Origin, *v))
				}
			}
		}
		slices.Sort(got)
		if fmt.Sprint(got) != want {
			t.Errorf("facts are %v, want %s", got, want)
		}
	}
	said("[a.com one 8 a.com two 7 b.com one 6]")
	removal, err := store.RemoveOrigin(t.Context(), "one")
	if err != nil || removal.Changed != 2 {
		t.Errorf("removed %+v, %v", removal, err)
	}
	said("[a.com two 7]")
	if _, err := store.RemoveOrigin(t.Context(), "one"); !errors.Is(err, scoring.ErrNotFound) {
		t.Errorf("removed again: %v", err)
	}
	importRows(t, store, "one.csv", "domain,employees\na.com,8\n")
	said("[a.com one 8 a.com two 7]")
	origins, err := store.Origins(t.Context())
	if err != nil || len(origins) != 2 || origins[0].Origin != "one" || origins[0].Companies != 1 {
		t.Errorf("origins %+v, %v", origins, err)
	}
}

// interrupted ends, as a killed process would, at a step of an import.
type interrupted struct{ *clickhouse.Facts }

var errKilled = errors.New("killed")

func (s interrupted) Stage(ctx context.Context, id string, layers []scoring.CompanyFacts) error {
	return errors.Join(s.Facts.Stage(ctx, id, layers[:len(layers)/2]), errKilled)
}

func (s interrupted) Discard(context.Context, table.FactsImport, error) error { return nil }

// An import that ended before it was committed changed nothing. One that ended afterwards is complete
// once the next import began.
func TestInterruptedImportIsAsBeforeOrComplete(t *testing.T) {
	t.Parallel()
	db := open(t)
	store := clickhouse.NewFacts(db)
	importRows(t, store, "crm.csv", "domain,employees\na.com,1\nb.com,1\n")
	employees := func(want string) {
		t.Helper()
		got := column(t, db, "SELECT concat(domain, ' ', toString(employees)) FROM company_facts FINAL WHERE employees > 0 ORDER BY domain")
		if fmt.Sprint(got) != want {
			t.Errorf("facts are %v, want %s", got, want)
		}
	}
	rows := []byte("domain,employees\na.com,2\nb.com,2\n")
	if _, err := facts.ImportCSV(t.Context(), interrupted{store}, "crm.csv", rows, facts.Options{}); !errors.Is(err, errKilled) {
		t.Fatalf("import: %v", err)
	}
	employees("[a.com 1 b.com 1]")

	open := table.NewImport(table.ImportFile)
	two := 2.0
	if err := store.Stage(t.Context(), open.ID, []scoring.CompanyFacts{{Domain: "a.com", Origin: "crm", Employees: &two, AsOf: noon},
		{Domain: "b.com", Origin: "crm", Employees: &two, AsOf: noon}}); err != nil {
		t.Fatal(err)
	}
	if err := store.NoteCommitted(t.Context(), open); err != nil {
		t.Fatal(err)
	}
	employees("[a.com 1 b.com 1]")
	importRows(t, store, "other.csv", "domain,founded_year\nc.com,1999\n")
	employees("[a.com 2 b.com 2]")
	left := column(t, db, "SELECT toString(count()) FROM facts_import FINAL WHERE state = 'committed'")
	if !slices.Equal(left, []string{"0"}) {
		t.Errorf("%s imports are open", left)
	}
}
