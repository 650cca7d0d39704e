package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "companyscore"

// goPackage is the output of `go list` for a package.
type goPackage struct {
	ImportPath string
	Standard   bool
	Imports    []string
	Deps       []string
}

// packages returns the packages of the project by path from its root. The root package is "".
func packages(t *testing.T) map[string]goPackage {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Standard,Imports,Deps", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]goPackage)
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		found[strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")] = p
	}
}

// in reports whether a package is one of the rooms or below one.
func in(path string, rooms ...string) bool {
	path = strings.TrimPrefix(path, module+"/")
	return slices.ContainsFunc(rooms, func(room string) bool { return path == room || strings.HasPrefix(path, room+"/") })
}

// isOwn reports whether an import is of this project.
func isOwn(path string) bool { return path == module || strings.HasPrefix(path, module+"/") }

// isStandard reports whether an import is of the standard library.
func isStandard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".") && first != module
}

// roles run as separate processes. They exchange data through the stores only.
var roles = []string{"server", "batch", "scoring/worker", "bench", "up"}

// wiring is the code that may import both ClickHouse and the roles.
var wiring = []string{"cmd", "up", "internal/stores", "internal/doctor", "internal/test"}

// imports are the rules for direct imports: forbidden reports whether the package path may not
// import imported.
var imports = []struct {
	rule      string
	forbidden func(path, imported string) bool
}{
	// A score can be computed anywhere, and one package has all of its code.
	{"scoring imports the standard library only", func(path, imported string) bool {
		return path == "scoring" && !isStandard(imported)
	}},
	// The statistics of all companies are computed in one process and read in another.
	{"universe imports the standard library and scoring only", func(path, imported string) bool {
		return path == "universe" && !isStandard(imported) && !in(imported, "scoring")
	}},
	// The parsers of pages and of files read names of countries with it.
	{"internal/country imports no package of the project", func(path, imported string) bool {
		return path == "internal/country" && isOwn(imported)
	}},
	// A load generator makes the same companies as the store without access to it.
	{"internal/seed imports no package of the project but scoring and the rows below the store", func(path, imported string) bool {
		return path == "internal/seed" && isOwn(imported) && !in(imported, "scoring", "internal/table")
	}},
	// Rows stand below the store and the roles that exchange them.
	{"internal/table imports no package of the project but scoring", func(path, imported string) bool {
		return path == "internal/table" && isOwn(imported) && imported != module+"/scoring"
	}},
	// The parser of fetched pages cannot send a request or open a file.
	{"scoring/source/site imports no network, no file and no package of the project but internal/country",
		func(path, imported string) bool {
			return path == "scoring/source/site" && (isOwn(imported) && imported != module+"/internal/country" || imported == "net" ||
				imported == "net/http" || imported == "os")
		}},
	// A role can be deployed, changed and read without the others. `up` starts them all. batch/jobs is what other processes read of the
	// jobs.
	{"a role imports no other role", func(path, imported string) bool {
		return isOwn(imported) && in(path, roles...) && in(imported, roles...) && !in(path, "up") && !in(imported, "batch/jobs") &&
			!sameRole(path, imported)
	}},
	{"batch/jobs imports no package of the project but Redis and the rows below the store", func(path, imported string) bool {
		return path == "batch/jobs" && isOwn(imported) && !in(imported, "internal/redis", "internal/table")
	}},
	// A role declares the part of the store that it uses as an interface.
	{"clickhouse is imported by the wiring only", func(path, imported string) bool {
		return in(imported, "clickhouse") && !in(path, append(wiring, "clickhouse")...)
	}},
	// The API of customers is one room, so that its rules are checked in one place.
	{"server is imported by the wiring only", func(path, imported string) bool {
		return imported == module+"/server" && !in(path, wiring...)
	}},
	// The console shows what the API knows and repeats no rule of it: it is below the server, has no
	// driver, and could be served by another HTTP server.
	{"server/console imports no HTTP server and no driver of ClickHouse", func(path, imported string) bool {
		return path == "server/console" && (imported == module+"/server" || in(imported, "clickhouse", "internal/stores") ||
			strings.HasPrefix(imported, "github.com/valyala/"))
	}},
	// Facts can be read from a file without a store.
	{"facts imports no store", func(path, imported string) bool {
		return in(path, "facts") && (in(imported, "clickhouse", "internal/redis", "internal/stores") ||
			strings.HasPrefix(imported, "github.com/redis/"))
	}},
	// A customer's program can import the client without the service.
	{"client imports the standard library only", func(path, imported string) bool {
		return path == "client" && !isStandard(imported)
	}},
	// Each of these libraries is in one room, so that it can be replaced there.
	{"only clickhouse imports a driver of ClickHouse", func(path, imported string) bool {
		return strings.HasPrefix(imported, "github.com/ClickHouse/") && !in(path, "clickhouse")
	}},
	{"only server and the peers of the bench import Fiber", func(path, imported string) bool {
		return strings.HasPrefix(imported, "github.com/gofiber/") && path != "server" && !in(path, "bench/peer")
	}},
	{"only batch imports the scheduler", func(path, imported string) bool {
		return strings.HasPrefix(imported, "github.com/robfig/cron") && path != "batch"
	}},
	{"only clickhouse/embedded imports the C library", func(path, imported string) bool {
		return strings.HasPrefix(imported, "github.com/ebitengine/purego") && path != "clickhouse/embedded"
	}},
	{"only scoring/source/site parses HTML", func(path, imported string) bool {
		return imported == "golang.org/x/net/html" && path != "scoring/source/site"
	}},
	{"only server/documents renders Markdown", func(path, imported string) bool {
		return strings.HasPrefix(imported, "github.com/yuin/goldmark") && path != "server/documents"
	}},
	// Fakes and test servers are never in the binary.
	{"internal/test is imported by tests and itself only", func(path, imported string) bool {
		return in(imported, "internal/test") && !in(path, "internal/test")
	}},
	// The command line imports all rooms, so none may import it.
	{"only main imports the command line, and nothing else", func(path, imported string) bool {
		return imported == module || in(imported, "cmd") && path != "" || path == "" && isOwn(imported) && !in(imported, "cmd")
	}},
}

func sameRole(a, b string) bool {
	return slices.ContainsFunc(roles, func(role string) bool { return in(a, role) && in(b, role) })
}

func TestImports(t *testing.T) {
	t.Parallel()
	for path, p := range packages(t) {
		for _, imported := range p.Imports {
			for _, r := range imports {
				if r.forbidden(path, imported) {
					t.Errorf("%q imports %s: %s", path, imported, r.rule)
				}
			}
		}
	}
}

// reaches are the rules for everything that a package imports, directly or not.
var reaches = []struct {
	path, rule string
	forbidden  func(dep string) bool
}{
	// The store is below the roles and what they do: a change of a role or a job cannot change what is stored, and a tool
	// that reads the store needs no scheduler.
	{"clickhouse", "clickhouse reaches no role, no job, no generator and no scheduler", func(dep string) bool {
		return isOwn(dep) && in(dep, append(roles, "internal/stores", "internal/cli", "internal/queue", "internal/seed", "scoring/rescore",
			"scoring/backtest")...) || strings.HasPrefix(dep, "github.com/robfig/cron")
	}},
	// A test key never reads or writes stored data and never causes a request to a source.
	{"server/sandbox", "the sandbox reaches no store, no source and no network", func(dep string) bool {
		switch {
		case isOwn(dep):
			return !slices.Contains([]string{"scoring", "universe", "server/api"}, strings.TrimPrefix(dep, module+"/"))
		case !isStandard(dep):
			return true
		}
		return slices.Contains([]string{"net", "net/http", "os/exec", "database/sql"}, dep)
	}},
	// Fakes are never shipped.
	{"", "the binary contains nothing of internal/test", func(dep string) bool { return in(dep, "internal/test") }},
}

func TestDependencies(t *testing.T) {
	t.Parallel()
	found := packages(t)
	for _, r := range reaches {
		p, ok := found[r.path]
		if !ok {
			t.Fatalf("there is no package %q", r.path)
		}
		for _, dep := range p.Deps {
			if dep != p.ImportPath && r.forbidden(dep) {
				t.Errorf("%q reaches %s: %s", r.path, dep, r.rule)
			}
		}
	}
}

// TestRootHasMainOnly checks that the root has no code but main.go: commands are in cmd, tests of the whole tree in the root.
func TestRootHasMainOnly(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	files = slices.DeleteFunc(files, func(file string) bool { return strings.HasSuffix(file, "_test.go") })
	if !slices.Equal(files, []string{"main.go"}) {
		t.Errorf("the root has %v, want main.go only: commands are in cmd", files)
	}
}

// statement finds SQL in a string of Go code. A SELECT of ?variables is SPARQL.
var statement = regexp.MustCompile("[\"`]\\s*(SELECT\\s+[^?\\s]|INSERT\\s+INTO|CREATE\\s+(TABLE|DATABASE|VIEW|MATERIALIZED)|ALTER\\s+TABL" +
	"E|DROP\\s+(TABLE|DATABASE)|OPTIMIZE\\s+TABLE)")

// sqlAllowed has statements in Go: the embedded engine parses them, servers of tests send them,
// and commands show one in their help or output.
var sqlAllowed = []string{"clickhouse/embedded", "internal/test/stores", "cmd/analyst.go", "cmd/sql.go", "cmd/sql_connection.go",
	"up/up.go"}

// TestSQLStaysUnderSQL checks that all SQL statements are under sql/.
func TestSQLStaysUnderSQL(t *testing.T) {
	t.Parallel()
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && slices.Contains([]string{".deps", ".git", "data"}, path) {
			return filepath.SkipDir
		}
		if entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") ||
			in(filepath.ToSlash(path), sqlAllowed...) {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if found := statement.Find(text); found != nil {
			t.Errorf("%s contains SQL: %s", path, found)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestImageHasEmbeddedFiles checks that .dockerignore leaves in what the packages of the program embed.
func TestImageHasEmbeddedFiles(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(".dockerignore")
	if err != nil {
		t.Fatal(err)
	}
	ignored := func(name string) (ignored bool) {
		for line := range strings.Lines(string(text)) {
			pattern, back := strings.CutPrefix(strings.TrimSpace(line), "!")
			pattern, anywhere := strings.CutPrefix(pattern, "**/")
			parts := strings.Split(name, "/")
			for from := range parts {
				for to := from + 1; to <= len(parts); to++ {
					if match, _ := path.Match(pattern, strings.Join(parts[from:to], "/")); match && (from == 0 || anywhere) {
						ignored = !back // the last line counts
					}
				}
			}
		}
		return ignored
	}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f",
		`{{if not .Standard}}{{range .EmbedFiles}}{{$.ImportPath}}/{{.}}{{"\n"}}{{end}}{{end}}`, ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	embedded := 0
	for file := range strings.Lines(string(out)) {
		name, own := strings.CutPrefix(strings.TrimSpace(file), module+"/")
		if !own {
			continue
		}
		embedded++
		if ignored(name) {
			t.Errorf(".dockerignore leaves out %s, which the program embeds", name)
		}
	}
	if embedded < 100 || !ignored("docs_test.go") || !ignored("examples/README.md") || !ignored("scoring/testdata/x") {
		t.Errorf("%d embedded files, or the patterns are not understood", embedded)
	}
}
