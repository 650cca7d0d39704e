package recipe_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"companyscore/facts"
	"companyscore/facts/recipe"
)

const example = `-- recipe: statements
-- A comment: with a colon.
-- publisher: Example Commission
-- documentation: https://example.com/data
-- licence: public domain
-- format: zip archives of tab-separated files
-- signals: revenue_latest_usd, employees
-- file sub: sub.txt [required: adsh, cik]
-- file num: num*.txt

SELECT 1 FROM file({sub:String}, 'TSVWithNames') CROSS JOIN file({num:String}, 'TSVWithNames')
`

func TestParse(t *testing.T) {
	t.Parallel()
	got, err := recipe.Parse(example)
	if err != nil {
		t.Fatal(err)
	}
	want := &recipe.Recipe{Name: "statements", Publisher: "Example Commission", Documentation: "https://example.com/data",
		Licence: "public domain", Format: "zip archives of tab-separated files", Signals: []string{"revenue_latest_usd", "employees"},
		Files:     []recipe.File{{Key: "sub", Pattern: "sub.txt", Required: []string{"adsh", "cik"}}, {Key: "num", Pattern: "num*.txt"}},
		Statement: example}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	f := func(says, old, replacement string) {
		t.Helper()
		text := strings.Replace(example, old, replacement, 1)
		if _, err := recipe.Parse(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q in place of %q: %v, want an error with %q", replacement, old, err, says)
		}
	}
	f("no line `-- recipe", "-- recipe:", "-- recip:")
	f("no value", "recipe: statements", "recipe:")
	f("other characters", "recipe: statements", "recipe: ../statements")
	f("line 4: a second line", "-- documentation: https://example.com/data", "-- publisher: Another")
	f("no line `-- file", example[strings.Index(example, "-- file sub"):strings.Index(example, "SELECT")], "")
	f("does not read {num:String}", "{num:String}", "{other:String}")
	f("choose another name", "-- file num", "-- file day")
	f("choose another name", "-- file num", "-- file identifiers")
	f("other characters", "-- file num", "-- file nu.m")
	f("none of base names", "num*.txt", "../num.txt")
	f("none of base names", "num*.txt", "num[.txt")
	f("requires no column", "[required: adsh, cik]", "[required: ,]")
	f("longer than", "-- A comment", "-- "+strings.Repeat("x", 300<<10))
}

func TestShippedRecipes(t *testing.T) {
	t.Parallel()
	for _, r := range recipe.Shipped() {
		if r.Publisher == "" || r.Documentation == "" || r.Licence == "" || r.Format == "" || r.Signals == nil {
			t.Errorf("the head of %s is not complete: %+v", r.Name, r)
		}
		for _, name := range r.Signals {
			if !facts.Known(name) && !facts.Known("signal:"+name) {
				t.Errorf("%s gives %q, which is neither a signal nor a column", r.Name, name)
			}
		}
		if loaded, err := recipe.Load(r.Name); err != nil || loaded.Name != r.Name {
			t.Errorf("the recipe in the file %s: %v", r.Name, err)
		}
	}
	if _, err := recipe.Load("none"); err == nil || !strings.Contains(err.Error(), "facts recipes") {
		t.Errorf("an unknown recipe: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(example)
	f.Add("-- file a: [required:]\n-- recipe: x\n")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := recipe.Parse(text)
		if err != nil {
			return
		}
		if r.Name == "" || len(r.Files) == 0 || strings.ContainsAny(r.Name, "/.\\ ") {
			t.Errorf("%+v", r)
		}
		for _, file := range r.Files {
			if file.Key == "" || strings.ContainsAny(file.Key, "/.\\ ") || file.Pattern == "" {
				t.Errorf("%+v", file)
			}
		}
	})
}
