package sql

import (
	"slices"
	"strings"
	"testing"
)

func TestSplitFindsTheStatements(t *testing.T) {
	t.Parallel()
	f := func(text string, want ...string) {
		t.Helper()
		if got := Split(text); !slices.Equal(got, want) {
			t.Errorf("Split(%q) = %q, want %q", text, got, want)
		}
	}
	f("")
	f(" \n-- only a comment; nothing else\n;;")
	f("A", "A")
	f("A;", "A")
	f("A; B;\nC", "A", "B", "C")
	f("A -- not here;\n B; C", "A -- not here;\n B", "C")
	f("-- about A;\nA; -- about B;\nB;", "-- about A;\nA", "-- about B;\nB")
	f("A /* ; */ B; C", "A /* ; */ B", "C")
	f("A ';' B; C", "A ';' B", "C")
	f("A 'it''s; --' B; C", "A 'it''s; --' B", "C")
	f(`A 'it\';' B; C`, `A 'it\';' B`, "C")
	f("A `;` \";\" B; C", "A `;` \";\" B", "C")
	f("';'", "';'")
	f("A 'open; B", "A 'open; B")
	f("A /* open; B", "A /* open; B")
}

func FuzzSplit(f *testing.F) {
	for _, m := range Migrations() {
		f.Add(m.Text)
	}
	f.Add("A ';")
	f.Add("-")
	f.Fuzz(func(t *testing.T, text string) {
		for _, statement := range Split(text) {
			if statement == "" || !strings.Contains(text, statement) {
				t.Errorf("Split(%q) made up %q", text, statement)
			}
			if again := Split(statement); len(again) != 1 || again[0] != statement {
				t.Errorf("statement %q of %q is split again: %q", statement, text, again)
			}
		}
	})
}

func TestFilesSayWhatTheyAre(t *testing.T) {
	t.Parallel()
	for _, name := range Queries() {
		text := Query(name)
		if !strings.HasPrefix(text, "-- name: "+name+"\n-- ") {
			t.Errorf("query %s does not begin with its name and purpose", name)
		}
		if n := len(Split(text)); n != 1 {
			t.Errorf("query %s holds %d statements, want 1", name, n)
		}
	}
	for _, m := range Migrations() { // also checks their order
		if !strings.HasPrefix(m.Text, "-- ") {
			t.Errorf("migration %s does not begin with its reasons", m.Name)
		}
	}
	for _, statement := range Views() {
		if strings.Contains(statement, "CREATE OR REPLACE VIEW fact\n") {
			continue // of the private database, for v1_fact and v1_fact_conflict
		}
		if !strings.Contains(statement, "CREATE OR REPLACE VIEW {public:Identifier}.v1_") ||
			!strings.Contains(statement, "\nDEFINER = CURRENT_USER SQL SECURITY DEFINER\n") {
			t.Errorf("a view is not one of the public database, or reads with the rights of the analyst: %.80s", statement)
		}
	}
	for _, statement := range OperatorViews(true) {
		if !strings.Contains(statement, "CREATE OR REPLACE VIEW v1_") {
			t.Errorf("a view for operators is not in the private database: %.80s", statement)
		}
	}
}

func TestAMissingQueryPanics(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("Query of an unknown name did not panic")
		}
	}()
	Query("no_such_query")
}
