// Package sql holds all SQL text of the project: migrations, which are applied
// once and in order; views for analysts and for operators, which are replaced at
// every migration; queries, one statement to a file; checks, the statements of
// `companyscore doctor`; and recipes, which read files of publishers (package facts/recipe).
//
// Until the first release each table has one migration, which is edited in place. From
// the first release on, migrations are only added and never edited.
//
// There are two databases. The public one has the views for analysts only, and
// analysts may read all of it. The private one, which is the default of the
// service's connections, has the tables and the views for operators.
package sql

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

//go:embed checks/*.sql migrations/*.sql queries/*.sql views/*.sql operator recipes
var files embed.FS

// Public is the name of the public database, unless the address of ClickHouse has
// another one.
const Public = "companyscore"

// Private returns the name of the private database that belongs to a public one.
func Private(public string) string { return public + "_private" }

// Query returns the statement of queries/NAME.sql. It panics when there is none,
// so that a wrong name shows when the program starts.
func Query(name string) string {
	text, err := files.ReadFile("queries/" + name + ".sql")
	if err != nil {
		panic(fmt.Sprintf("sql: no query %q", name))
	}
	return string(text)
}

// Check returns the statement of checks/NAME.sql. It panics when there is none.
func Check(name string) string { return read("checks", name) }

// Recipe returns the text of recipes/NAME.sql. ok is false if there is none.
func Recipe(name string) (text string, ok bool) {
	if !slices.Contains(Recipes(), name) {
		return "", false
	}
	return read("recipes", name), true
}

// Recipes lists the names of all recipes, sorted.
func Recipes() []string { return names("recipes") }

// Queries lists the names of all queries, sorted.
func Queries() []string { return names("queries") }

// Migration is one numbered step of the schema.
type Migration struct {
	Number uint32
	Name   string // file name without .sql
	Text   string
}

// Migrations lists all migrations by number.
func Migrations() []Migration {
	var all []Migration
	for _, name := range names("migrations") {
		number, err := strconv.ParseUint(name[:3], 10, 32)
		if err != nil {
			panic(fmt.Sprintf("sql: migration %q does not begin with a number", name))
		}
		if n := len(all); n > 0 && all[n-1].Number == uint32(number) {
			panic(fmt.Sprintf("sql: migrations %q and %q have one number", all[n-1].Name, name))
		}
		all = append(all, Migration{uint32(number), name, read("migrations", name)})
	}
	return all
}

// Views returns the statements that define the views for analysts. They have the
// parameter public Identifier, the database of the views, and read tables of the
// default database.
func Views() []string { return statements("views") }

// OperatorViews returns the statements that define the views for operators, in the
// default database. A server that logs statements in system.query_log has its own
// definition of some.
func OperatorViews(logs bool) []string {
	all := statements("operator")
	if logs {
		all = append(all, statements("operator/server")...)
	}
	return all
}

func statements(dir string) []string {
	var all []string
	for _, name := range names(dir) {
		all = append(all, Split(read(dir, name))...)
	}
	return all
}

// Split cuts a file into its statements, which semicolons end. Semicolons inside
// comments and quotes end nothing. A statement keeps the comments before it.
func Split(text string) []string {
	var statements []string
	start, empty := 0, true // of the statement that is being read; empty while it holds only comments
	for i := 0; i < len(text); {
		switch n := skipped(text[i:]); {
		case n > 0:
			empty = empty && text[i] != '\'' && text[i] != '"' && text[i] != '`'
			i += n
		case text[i] == ';':
			if !empty {
				statements = append(statements, strings.TrimSpace(text[start:i]))
			}
			i++
			start, empty = i, true
		default:
			empty = empty && unicode.IsSpace(rune(text[i]))
			i++
		}
	}
	if !empty {
		statements = append(statements, strings.TrimSpace(text[start:]))
	}
	return statements
}

// skipped is the length of the comment or quoted text that text begins with, 0
// when it begins with neither.
func skipped(text string) int {
	until := func(begin, end string) int {
		if n := strings.Index(text[len(begin):], end); n >= 0 {
			return len(begin) + n + len(end)
		}
		return len(text)
	}
	switch {
	case strings.HasPrefix(text, "--"):
		return until("--", "\n")
	case strings.HasPrefix(text, "/*"):
		return until("/*", "*/")
	case text[0] != '\'' && text[0] != '"' && text[0] != '`':
		return 0
	}
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case text[0]: // a doubled quote ends one text and begins another, which comes to the same
			return i + 1
		}
	}
	return len(text)
}

func names(dir string) []string {
	entries, err := fs.Glob(files, dir+"/*.sql")
	if err != nil {
		panic(err)
	}
	for i, e := range entries {
		entries[i] = strings.TrimSuffix(strings.TrimPrefix(e, dir+"/"), ".sql")
	}
	slices.Sort(entries)
	return entries
}

func read(dir, name string) string {
	text, err := files.ReadFile(dir + "/" + name + ".sql")
	if err != nil {
		panic(err)
	}
	return string(text)
}
