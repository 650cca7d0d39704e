package documents

import (
	"fmt"
	"html"
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"companyscore/docs"
)

func library(t *testing.T) *Library {
	t.Helper()
	l, err := New(docs.Files)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

var (
	href = regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	id   = regexp.MustCompile(` id="([^"]*)"`)
)

// TestLinksOfPagesLeadSomewhere follows all links of all rendered documents, and those to their headings.
func TestLinksOfPagesLeadSomewhere(t *testing.T) {
	t.Parallel()
	l := library(t)
	addresses, pictures, err := Addresses(docs.Files)
	if err != nil || len(addresses) != len(l.Pages) {
		t.Fatalf("%d addresses of %d pages, %v", len(addresses), len(l.Pages), err)
	}
	ids, served := make(map[string]bool), map[string]bool{"/docs": true, "/docs/errors": true}
	for address, p := range l.Pages {
		served[address] = true
		if p.Title == "" {
			t.Errorf("%s has no title", address)
		}
		for _, m := range id.FindAllStringSubmatch(string(p.Body), -1) {
			if ids[address+"#"+m[1]] {
				t.Errorf("%s has two headings %s", address, m[1])
			}
			ids[address+"#"+m[1]] = true
		}
	}
	for _, address := range pictures {
		served[address] = true
	}
	links := 0
	for address, p := range l.Pages {
		for _, m := range href.FindAllStringSubmatch(string(p.Body), -1) {
			link := html.UnescapeString(m[1])
			if strings.Contains(link, "://") {
				continue
			}
			links++
			page, anchor, found := strings.Cut(link, "#")
			if page == "" {
				page = address
			}
			if !served[page] || found && !ids[page+"#"+anchor] {
				t.Errorf("%s: %s leads nowhere", address, link)
			}
		}
	}
	if links < 200 {
		t.Errorf("%d links were followed", links)
	}
}

func TestNavigationHasEachDocument(t *testing.T) {
	t.Parallel()
	listed := make(map[string]int)
	for _, g := range library(t).Groups {
		for _, p := range g.Pages {
			listed[p.Path]++
		}
	}
	files, err := fs.Glob(docs.Files, "*.md")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d documents, %v", len(files), err)
	}
	for _, file := range files {
		if n := listed[address(file)]; n != 1 {
			t.Errorf("%s is listed %d times", file, n)
		}
	}
}

func TestRender(t *testing.T) {
	t.Parallel()
	resolved := func(link string) string {
		return map[string]string{"a.md": "/docs/a", "images/a.svg": "/docs/images/a.svg"}[link]
	}
	for _, test := range []struct{ name, source, want string }{
		{"a link to a page", "[a](a.md)", `<p><a href="/docs/a">a</a></p>`},
		{"a link that is not served", "see [`main.go` and *more*](../main.go) now",
			"<p>see <code>main.go</code> and <em>more</em> now</p>"},
		{"a link elsewhere", "[x](https://example.com/a)", `<p><a href="https://example.com/a">x</a></p>`},
		{"a link that runs code", "[x](javascript:alert(1))", "<p>x</p>"},
		{"another one", "[x](javascript://a/%0aalert(1))", `<p><a href="">x</a></p>`},
		{"a picture", "![text](images/a.svg)", `<p><img src="/docs/images/a.svg" alt="text"></p>`},
		{"a comment", "a\n\n<!-- b -->\n\nc", "<p>a</p>\n<p>c</p>"},
		{"raw HTML", "a <b onclick=x>b</b>\n\n<script>x</script>\n", "<p>a b</p>"},
		{"code", "`<b>`\n\n```sh\na < b\n```",
			"<p><code>&lt;b&gt;</code></p>\n<pre tabindex=\"0\"><code class=\"language-sh\">a &lt; b\n</code></pre>"},
		{"equal headings", "## `a`: B c\n\n## a B c", "<h2 id=\"a-b-c\"><code>a</code>: B c</h2>\n<h2 id=\"a-b-c-1\">a B c</h2>"},
	} {
		p, err := render("x.md", []byte(test.source), resolved)
		if err != nil || strings.TrimSpace(string(p.Body)) != test.want {
			t.Errorf("%s: %v, got\n%s\nwant\n%s", test.name, err, p.Body, test.want)
		}
	}
}

func TestSearch(t *testing.T) {
	t.Parallel()
	l := library(t)
	for _, test := range []struct{ query, path string }{
		{"WHAT each CRASH", "/docs/consistency#what-each-crash-can-lose"},
		{"suppliers screen", "/docs/screen-suppliers"},
		{"premium decide the grade", "/docs/sql/queries#for-whom-does-the-premium-decide-the-grade"},
		{"noeviction", "/docs/operations#what-each-role-needs"},
	} {
		hits := l.Search(test.query)
		if len(hits) == 0 || hits[0].Path != test.path {
			t.Errorf("%q: %+v, want %s", test.query, hits[:min(len(hits), 3)], test.path)
			continue
		}
		for _, hit := range hits {
			text := strings.ToLower(fmt.Sprint(hit.Page, hit.Section, hit.Before, hit.Match, hit.After))
			if !strings.Contains(text, strings.ToLower(strings.Fields(test.query)[0])) && hit.Match == "" {
				t.Errorf("%q: hit %+v does not show why", test.query, hit)
			}
		}
	}
	for query, want := range map[string]int{"": 0, " \t": 0, "the": hitsMax, "cold nosuchword": 0, "\xff\xfe": 0,
		strings.Repeat("é", QueryMax): 0} {
		if hits := l.Search(query); len(hits) != want {
			t.Errorf("%q has %d hits, want %d", query, len(hits), want)
		}
	}
}

func TestExcerpt(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300)
	for _, test := range []struct {
		text string
		want Hit
	}{
		{"one Word here", Hit{Before: "one ", Match: "Word", After: " here"}},
		{"nothing", Hit{}},
		{long + "word" + long, Hit{Match: "word", After: long}},
		{"first " + strings.Repeat("é", 60) + " word", Hit{Match: "word"}},
		{"İ word", Hit{}}, // lower case is longer
	} {
		s := section{text: test.text, lowerText: strings.ToLower(test.text)}
		if got := s.excerpt([]string{"none", "word"}); got != test.want {
			t.Errorf("excerpt of %q = %+v, want %+v", test.text, got, test.want)
		}
	}
}
