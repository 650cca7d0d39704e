// Package sql holds all SQL text of the project: migrations, which are applied
// once and in order; views, which are replaced at every migration; and queries,
// one statement to a file.
package sql

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

//go:embed migrations/*.sql queries/*.sql views/*.sql
var files embed.FS

// Query returns the statement of queries/NAME.sql. It panics when there is none,
// so that a wrong name shows when the program starts.
func Query(name string) string {
	text, err := files.ReadFile("queries/" + name + ".sql")
	if err != nil {
		panic(fmt.Sprintf("sql: no query %q", name))
	}
	return string(text)
}

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
		all = append(all, Migration{uint32(number), name, read("migrations", name)})
	}
	return all
}

// Views returns the statements that define the public views.
func Views() []string {
	var all []string
	for _, name := range names("views") {
		all = append(all, Split(read("views", name))...)
	}
	return all
}

// Split cuts a file into its statements. A statement ends with a semicolon at
// the end of a line.
func Split(text string) []string {
	var statements []string
	for part := range strings.SplitSeq(text+"\n", ";\n") {
		if strings.TrimSpace(stripComments(part)) != "" {
			statements = append(statements, strings.TrimSpace(part))
		}
	}
	return statements
}

func stripComments(text string) string {
	lines := slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool {
		return strings.HasPrefix(strings.TrimSpace(line), "--")
	})
	return strings.Join(lines, "\n")
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
