package server

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"companyscore/internal/test/openapicheck"
)

// pagesByCode returns the page of each code.
func pagesByCode() map[string]errorPage {
	pages := make(map[string]errorPage)
	for _, p := range errorPages {
		pages[p.Code()] = p
	}
	return pages
}

// TestEveryProblemHasAPage finds the problems in the source, so that none can be left out.
func TestEveryProblemHasAPage(t *testing.T) {
	t.Parallel()
	statuses := make(map[string][]int) // by slug
	for _, p := range errorPages {
		statuses[p.Answers[0].Slug] = p.Statuses()
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	slugs, codes, found := make(map[string]string), make(map[string]string), 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.CompositeLit)
			if !ok || literal.Type == nil || types.ExprString(literal.Type) != "problem" {
				return true
			}
			found++
			at, fields := set.Position(literal.Pos()), make(map[string]string)
			for _, element := range literal.Elts {
				field := element.(*ast.KeyValueExpr)
				fields[types.ExprString(field.Key)] = types.ExprString(field.Value)
			}
			code := fields["Code"]
			slug, err := strconv.Unquote(fields["Slug"])
			status, _ := strconv.Atoi(fields["Status"])
			switch {
			case err != nil:
				t.Errorf("%s: the problem %s has no Slug. Give it one, and a page in errorPages (server/errorpages.go).", at, code)
			case statuses[slug] == nil:
				t.Errorf("%s: the problem %s has no page. Write one with the slug %s in errorPages (server/errorpages.go).", at, code, slug)
			case !slices.Contains(statuses[slug], status):
				t.Errorf("%s: the page %s has no answer with status %d. Add the problem to its Answers (server/errorpages.go).", at, slug, status)
			case slugs[code] != "" && slugs[code] != slug, codes[slug] != "" && codes[slug] != code:
				t.Errorf("%s: code %s and slug %s do not belong to each other only", at, code, slug)
			}
			slugs[code], codes[slug] = slug, code
			return true
		})
	}
	if found < len(errorPages) {
		t.Errorf("%d problems were found, and there are %d pages", found, len(errorPages))
	}
}

// listed matches codes that list what is allowed. Their slugs are fixed names.
var listed = regexp.MustCompile(`[[\d]`)

func TestErrorPagesAreComplete(t *testing.T) {
	t.Parallel()
	if len(pagesByCode()) != len(errorPages) {
		t.Error("two pages have the same code")
	}
	other := regexp.MustCompile(`[^a-z0-9]+`)
	paths := make(map[string]bool)
	for _, p := range errorPages {
		slug := p.Answers[0].Slug
		if want := strings.Trim(other.ReplaceAllString(p.Code(), "-"), "-"); slug != want && !listed.MatchString(p.Code()) || other.ReplaceAllString(slug, "-") != slug {
			t.Errorf("%q has the slug %q, want %q", p.Code(), slug, want)
		}
		if paths[p.Path()] {
			t.Errorf("%s is there twice", p.Path())
		}
		paths[p.Path()] = true
		for _, a := range p.Answers {
			if a.Code != p.Code() || a.Slug != slug || a.Status < 400 {
				t.Errorf("%s has an answer %+v", p.Path(), a)
			}
			if body := a.body(); a.Message == "" || !strings.HasSuffix(body.Message, ". See "+p.Path()+".") {
				t.Errorf("the message is %q", body.Message)
			}
			if wait := strings.Contains(p.Retry, "Retry-After"); a.RetryAfter > 0 && !wait {
				t.Errorf("%s does not mention Retry-After", p.Path())
			}
		}
		for _, text := range []string{p.Meaning, cmp.Or(p.Charged, notCharged), cmp.Or(p.Retry, notRetried), p.Do} {
			if !strings.HasSuffix(text, ".") {
				t.Errorf("%s: %q is no sentence", p.Path(), text)
			}
		}
	}
}

// link matches the end of a message.
var link = regexp.MustCompile(`\. See (/docs/errors/[a-z0-9-]+)\.$`)

// wantsLink fails the test unless a message ends with the address of the page about the code.
func wantsLink(t *testing.T, place, code, message string) {
	t.Helper()
	found := link.FindStringSubmatch(message)
	if page, ok := pagesByCode()[code]; !ok || found == nil || found[1] != page.Path() {
		t.Errorf("%s: the message of %q does not end with its page: %q", place, code, message)
	}
}

func TestDescribedErrorsNameTheirPages(t *testing.T) {
	t.Parallel()
	doc, err := openapicheck.Load()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			for status, response := range op.Responses.Map() {
				media := response.Value.Content.Get("application/json")
				if media == nil || status < "400" {
					continue
				}
				for _, example := range openapicheck.Examples(media) {
					n++
					fields := example.(map[string]any)
					wantsLink(t, method+" "+path+" "+status, fields["error"].(string), fields["message"].(string))
				}
			}
		}
	}
	if n < 60 {
		t.Errorf("%d examples were found", n)
	}
}

func TestErrorsOfTheProxyNameTheirPages(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../deploy/nginx.conf")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`return (\d+) '\{"error":"([^"]*)","message":"([^"]*)"\}'`).FindAllStringSubmatch(string(text), -1)
	if len(found) < 10 {
		t.Errorf("%d errors were found", len(found))
	}
	for _, m := range found {
		wantsLink(t, "deploy/nginx.conf", m[2], m[3])
		if status, _ := strconv.Atoi(m[1]); !slices.Contains(pagesByCode()[m[2]].Statuses(), status) {
			t.Errorf("the page of %q has no status %d", m[2], status)
		}
	}
}
