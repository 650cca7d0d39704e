package recipe_test

import (
	"archive/zip"
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"companyscore/facts"
	"companyscore/facts/recipe"
	"companyscore/internal/test/wait"
)

var update = flag.Bool("update", false, "write the golden files of shipped recipes")

// readKnown reads a file of identifiers.
func readKnown(t *testing.T, path string) (k known) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), "\t")
		if len(cells) != 3 {
			t.Fatalf("%s: %q has not three cells", path, line)
		}
		k = append(k, [3]string(cells))
	}
	return k[1:] // without the header
}

// given returns the files of a directory that an import gets. A directory with the suffix .zip is packed.
func given(t *testing.T, dir string) (files []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case e.Name() == "identifiers.tsv" || e.Name() == "want.csv":
			continue
		case e.IsDir():
			var packed bytes.Buffer
			w := zip.NewWriter(&packed)
			if err := w.AddFS(os.DirFS(path)); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			path = write(t, e.Name(), packed.Bytes())
		}
		files = append(files, path)
	}
	return files
}

// result runs a shipped recipe and returns its rows, of which a line is one, in the order of the lines.
func result(t *testing.T, name string, day time.Time, k known, files []string) (string, recipe.Report) {
	t.Helper()
	r, err := recipe.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	var rows []byte
	copied := func(ctx context.Context, job recipe.Job) (uint64, error) {
		read, err := engine(ctx, job)
		if err == nil {
			rows, err = os.ReadFile(job.Result)
		}
		return read, err
	}
	cfg := recipe.Config{Recipe: r, Files: files, Identifiers: k, Engine: copied, Dir: t.TempDir(), Limit: wait.Max}
	report, err := recipe.Import(t.Context(), newMemory(), cfg, facts.Options{Day: day})
	if err != nil {
		t.Fatal(err)
	}
	return sorted(string(rows)), report
}

// sorted sorts the lines after the first one. No value of the tests has a line end.
func sorted(table string) string {
	lines := strings.SplitAfter(table, "\n")
	lines = lines[:len(lines)-1] // what is behind the last line end
	rows := lines[1:]
	slices.Sort(rows)
	return strings.Join(lines, "")
}

// TestStatementsOfAQuarter runs sec-statements as of a day on which no fiscal year is known, so that quarters count.
func TestStatementsOfAQuarter(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("testdata", "shipped", "sec-statements")
	got, _ := result(t, "sec-statements", time.Date(2010, 7, 1, 0, 0, 0, 0, time.UTC), readKnown(t, filepath.Join(dir, "identifiers.tsv")),
		given(t, dir))
	compare(t, filepath.Join("testdata", "shipped", "sec-statements-2010-07-01.csv"), got)
}

// TestPageviewsOfThirtyDays covers 29 of 30 days: the views of the missing hours are filled in.
func TestPageviewsOfThirtyDays(t *testing.T) {
	t.Parallel()
	end := time.Date(2026, 8, 22, 23, 0, 0, 0, time.UTC)
	files := []string{write(t, "titles.csv", []byte("domain,title\nquill.com,Quill (company)\n"))}
	for hour := range 696 {
		name := end.Add(-time.Duration(hour) * time.Hour).Format("pageviews-20060102-150000")
		files = append(files, write(t, name, []byte("de Quill_(company) 5 0\nen Quill_(company) 1 0\nen.m Quill_(company) 2 0\n")))
	}
	got, _ := result(t, "wikimedia-pageviews", end, known{{"quill.com", "domain", "quill.com"}}, files)
	if want := "quill.com\",\"2026-08-22\",2160,"; !strings.Contains(got, want) {
		t.Errorf("%s\nwant a row with %s", got, want)
	}
}

// TestShippedResults compares the rows of each shipped recipe, over a cut of a real file or an invented one, with a golden file.
// go test -run TestShippedResults -update writes the golden files.
func TestShippedResults(t *testing.T) {
	t.Parallel()
	days := map[string]string{"sec-statements": "2025-07-02"} // so that the newest quarter is not in the future
	for _, r := range recipe.Shipped() {
		t.Run(r.Name, func(t *testing.T) {
			dir := filepath.Join("testdata", "shipped", r.Name)
			day, err := time.Parse(time.DateOnly, days[r.Name])
			if err != nil {
				day = time.Date(2026, 8, 23, 0, 0, 0, 0, time.UTC)
			}
			got, report := result(t, r.Name, day, readKnown(t, filepath.Join(dir, "identifiers.tsv")), given(t, dir))
			if report.Matched == 0 && r.Name != "wikimedia-pageviews" {
				t.Error("no row is matched")
			}
			compare(t, filepath.Join(dir, "want.csv"), got)
		})
	}
}

// compare compares rows with a golden file, which it writes before if update is set.
func compare(t *testing.T, golden, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
}
