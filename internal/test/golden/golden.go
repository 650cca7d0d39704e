// Package golden compares what tests produce with files that are kept beside them.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write golden files instead of comparing with them")

// Updating reports whether golden files are written: with -update.
func Updating() bool { return *update }

// Compare compares a text with a file and reports the difference as an error of the
// test. With -update it writes the file, and its directory.
func Compare(t testing.TB, path, got string) {
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

// CompareTables compares tables of a Markdown page with the given ones, by name. A table stands
// between the lines "<!-- table NAME -->" and "<!-- end of table -->". With -update it writes them.
func CompareTables(t testing.TB, path string, tables map[string]string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for name, table := range tables {
		begin, end := "<!-- table "+name+" -->\n", "<!-- end of table -->"
		before, rest, found := strings.Cut(page, begin)
		_, after, closed := strings.Cut(rest, end)
		if !found || !closed {
			t.Fatalf("%s has no place for the table %s", path, name)
		}
		page = before + begin + "\n" + table + "\n" + end + after
	}
	Compare(t, path, page)
}

// Table is a Markdown table. Add its rows with Row.
type Table struct{ strings.Builder }

// NewTable returns a table with a head.
func NewTable(head ...string) *Table {
	t := new(Table)
	t.Row(head...)
	t.Row(slices.Repeat([]string{"---"}, len(head))...)
	return t
}

// Row adds a row.
func (t *Table) Row(cells ...string) { t.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
