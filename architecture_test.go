package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "companyscore"

// goPackage is what the go command knows of a package.
type goPackage struct {
	ImportPath string
	Standard   bool
	Imports    []string
	Deps       []string
}

// packages lists the packages of the project, by path from its root.
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

// in reports whether a package lies in one of the rooms, or is one.
func in(path string, rooms ...string) bool {
	path = strings.TrimPrefix(path, module+"/")
	return slices.ContainsFunc(rooms, func(room string) bool { return path == room || strings.HasPrefix(path, room+"/") })
}

// isStandard reports whether an import is of the standard library.
func isStandard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".") && first != module
}

// TestRoomsKeepToThemselves states which room may import what, and why.
func TestRoomsKeepToThemselves(t *testing.T) {
	t.Parallel()
	roles := []string{"server", "batch", "scoring/worker", "bench"}
	fakes := []string{"internal/test"}
	for path, p := range packages(t) {
		for _, imported := range p.Imports {
			own := strings.HasPrefix(imported, module+"/")
			switch {
			// A score must be computable anywhere, by reading one room.
			case path == "scoring" && !isStandard(imported):
				t.Errorf("%s imports %s: scoring is pure", path, imported)
			// What is known of all companies is counted in several places and used in others.
			case path == "universe" && !isStandard(imported) && imported != module+"/scoring":
				t.Errorf("%s imports %s: universe is pure", path, imported)
			// Load generators must know whom to ask for without a store, and stores write what it says.
			case path == "internal/seed" && own && imported != module+"/scoring":
				t.Errorf("%s imports %s: internal/seed is pure", path, imported)
			// What strangers send is read without a way to ask for more.
			case path == "scoring/source/site" && (own || imported == "net" || imported == "net/http" || imported == "os"):
				t.Errorf("%s imports %s: scoring/source/site is pure", path, imported)
			// The roles run in processes of their own and meet in the stores only.
			case own && in(path, roles...) && in(imported, roles...) && !sameRole(path, imported, roles):
				t.Errorf("%s imports %s: roles do not know each other", path, imported)
			// What depends on one of these libraries is in one room, so that it can be replaced there.
			case strings.HasPrefix(imported, "github.com/ClickHouse/") && !in(path, "clickhouse"):
				t.Errorf("%s imports %s: ClickHouse is spoken to in clickhouse/", path, imported)
			case strings.HasPrefix(imported, "github.com/gofiber/") && path != "server" && !in(path, "bench/peer"):
				t.Errorf("%s imports %s: Fiber stays in server", path, imported)
			case strings.HasPrefix(imported, "github.com/ebitengine/purego") && path != "clickhouse/embedded":
				t.Errorf("%s imports %s: the C library stays in clickhouse/embedded", path, imported)
			case imported == "golang.org/x/net/html" && path != "scoring/source/site":
				t.Errorf("%s imports %s: only scoring/source/site parses HTML", path, imported)
			// Fakes and test servers are never in the binary.
			case in(imported, fakes...) && !in(path, fakes...):
				t.Errorf("%s imports %s: internal/test is for tests only", path, imported)
			// Only the command line knows all rooms.
			case own && imported == module:
				t.Errorf("%s imports the command line", path)
			}
		}
	}
}

func sameRole(a, b string, roles []string) bool {
	return slices.ContainsFunc(roles, func(role string) bool { return in(a, role) && in(b, role) })
}

// TestSandboxReachesNothing holds what a test key is promised: its answers are
// made without any store, source or network.
func TestSandboxReachesNothing(t *testing.T) {
	t.Parallel()
	p, ok := packages(t)["server/sandbox"]
	if !ok {
		t.Fatal("there is no sandbox")
	}
	allowed := []string{"scoring", "universe", "server/api"}
	for _, dep := range p.Deps {
		switch {
		case strings.HasPrefix(dep, module+"/") && !slices.Contains(allowed, strings.TrimPrefix(dep, module+"/")):
			t.Errorf("the sandbox reaches %s", dep)
		case !strings.HasPrefix(dep, module) && !isStandard(dep):
			t.Errorf("the sandbox reaches %s", dep)
		case dep == "net" || dep == "net/http" || dep == "os/exec" || dep == "database/sql":
			t.Errorf("the sandbox reaches %s", dep)
		}
	}
}

// statement finds SQL in a string of Go code. What selects ?variables is SPARQL.
var statement = regexp.MustCompile("[\"`]\\s*(SELECT\\s+[^?\\s]|INSERT\\s+INTO|CREATE\\s+(TABLE|DATABASE|VIEW|MATERIALIZED)|ALTER\\s+TABLE|DROP\\s+(TABLE|DATABASE)|OPTIMIZE\\s+TABLE)")

// TestSQLStaysUnderSQL keeps statements where people who know SQL look for them.
// The embedded engine and the servers of tests read statements, and package main shows
// one in its help.
func TestSQLStaysUnderSQL(t *testing.T) {
	t.Parallel()
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (path == ".deps" || path == ".git" || path == "data" || path == filepath.Join("clickhouse", "embedded") || path == filepath.Join("internal", "test", "stores")) {
			return filepath.SkipDir
		}
		if entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || path == "sql.go" || path == "up.go" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if found := statement.Find(text); found != nil {
			t.Errorf("%s holds SQL: %s", path, found)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
