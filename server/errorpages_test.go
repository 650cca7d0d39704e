package server

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"companyscore/internal/test/openapicheck"
)

// pagesByCode returns the page of each code.
func pagesByCode() map[string]*errorPage {
	pages := make(map[string]*errorPage)
	for _, p := range errorPages {
		pages[p.Code] = p
	}
	return pages
}

func TestErrorPagesAreComplete(t *testing.T) {
	t.Parallel()
	if len(pagesByCode()) != len(errorPages) {
		t.Error("two pages have the same code")
	}
	slug, paths := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`), make(map[string]bool)
	for _, p := range errorPages {
		if !slug.MatchString(p.Slug) || len(p.Slug) > 40 {
			t.Errorf("%q has the slug %q. Give it a short one.", p.Code, p.Slug)
		}
		if paths[p.Path()] {
			t.Errorf("%s is there twice", p.Path())
		}
		paths[p.Path()] = true
		for _, a := range p.Answers {
			if body := a.body(); a.Message == "" || a.Status < 400 || !strings.HasSuffix(body.Message, ". See "+p.Path()+".") {
				t.Errorf("%s has the answer %d, %q", p.Path(), a.Status, body.Message)
			}
			if a.RetryAfter > 0 && !strings.Contains(p.Retry, "Retry-After") {
				t.Errorf("%s does not mention Retry-After", p.Path())
			}
		}
		for _, text := range []string{p.Meaning, p.Charged, p.Retry, p.Do} {
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
