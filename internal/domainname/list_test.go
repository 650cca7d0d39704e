package domainname

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestDomainsAreReadFromAnyFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, c := range map[string]struct {
		path, stdin string
		want        []string
		fails       bool
	}{
		"list":      {path: write("a.txt", "# companies\n\nb.com  the second\r\na.com\n"), want: []string{"b.com", "a.com"}},
		"stdin":     {path: "-", stdin: "a.com\nb.com", want: []string{"a.com", "b.com"}},
		"table":     {path: write("a.csv", "name,domain\n\"A, Inc\",a.com\nB,\nC,c.com\n"), want: []string{"a.com", "c.com"}},
		"no column": {path: write("b.csv", "name,site\nA,a.com\n"), fails: true},
		"empty":     {path: write("c.csv", ""), fails: true},
		"ragged":    {path: write("d.csv", "name,domain\nA\n"), fails: true},
		"long line": {path: write("b.txt", strings.Repeat("a", lineMaxBytes+1)), fails: true},
		"none":      {path: filepath.Join(dir, "none"), fails: true},
	} {
		got, err := ReadFile(c.path, strings.NewReader(c.stdin))
		if (err != nil) != c.fails || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	got, err := ParseAll([]string{"https://www.A.com/x", "a.com", "b.com"})
	if err != nil || !slices.Equal(got, []string{"a.com", "b.com"}) {
		t.Errorf("canonical: %v, %v", got, err)
	}
	if _, err := ParseAll([]string{"localhost", "a.com", "1.2.3.4"}); err == nil || !strings.Contains(err.Error(), "localhost") ||
		!strings.Contains(err.Error(), "1.2.3.4") {
		t.Errorf("every fault is named: %v", err)
	}
}
