package scoring

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The package must be usable to recompute a score anywhere: it imports only the standard library,
// and no clock, network or store.
func TestImports(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range parsed.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			root, _, _ := strings.Cut(path, "/")
			if root == "companyscore" || strings.Contains(root, ".") {
				t.Errorf("%s imports %s, which is not in the standard library", file, path)
			}
			if root == "net" || root == "os" || path == "database/sql" {
				t.Errorf("%s imports %s: this package reaches nothing outside itself", file, path)
			}
		}
	}
}
