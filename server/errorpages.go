package server

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"html/template"
	"net/http"
	"slices"
)

// errorPagesPath is the address of the list of all error codes. The page about a code is
// below it, at the slug of the code.
const errorPagesPath = "/docs/errors"

// errorPage is an error code with the page that explains it to callers.
type errorPage struct {
	// Code is stable, for programs.
	Code string
	// Slug is the name of the page. Empty means that newError makes it from the code.
	Slug string
	// Meaning says what the code means.
	Meaning string
	// Charged says whether the request counts as a call. Empty means that it does not.
	Charged string
	// Retry says whether to repeat the request and when. Empty means that the same request
	// gets the same answer.
	Retry string
	// Do says what the caller can do.
	Do string
	// Answers are the problems with the code. The page shows each.
	Answers []problem
}

// errorPages has the page of each code. newError adds them.
var errorPages []*errorPage

// Path returns the address of the page.
func (p *errorPage) Path() string { return errorPagesPath + "/" + p.Slug }

// Statuses returns the statuses of the code, each once.
func (p *errorPage) Statuses() (statuses []int) {
	for _, a := range p.Answers {
		if !slices.Contains(statuses, a.Status) {
			statuses = append(statuses, a.Status)
		}
	}
	return statuses
}

// Examples returns the answers as they are sent, without headers that all answers have.
func (p *errorPage) Examples() ([]example, error) {
	examples := make([]example, len(p.Answers))
	for i, a := range p.Answers {
		var body bytes.Buffer
		encoder := json.NewEncoder(&body)
		encoder.SetEscapeHTML(false) // the template escapes it
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(a.body()); err != nil {
			return nil, err
		}
		examples[i] = example{Status: a.Status, Text: http.StatusText(a.Status), RetryAfter: a.RetryAfter, Body: body.String()}
	}
	return examples, nil
}

// example is an answer on a page. RetryAfter is in seconds; 0 means that it has no such header.
type example struct {
	Status     int
	Text       string
	RetryAfter int
	Body       string
}

//go:embed pages.html errorpages.html documents.html
var pageFiles embed.FS

// pageTemplates are the pages about errors and the frame of the documents.
var pageTemplates = template.Must(template.ParseFS(pageFiles, "*.html"))

// renderErrorPages returns the list of all error codes, by status and code, and the page about each,
// by address.
func renderErrorPages() (map[string][]byte, error) {
	pages := make(map[string][]byte, 1+len(errorPages))
	sorted := slices.SortedFunc(slices.Values(errorPages), func(a, b *errorPage) int {
		return cmp.Or(cmp.Compare(a.Answers[0].Status, b.Answers[0].Status), cmp.Compare(a.Code, b.Code))
	})
	var list bytes.Buffer
	if err := pageTemplates.ExecuteTemplate(&list, "list", sorted); err != nil {
		return nil, err
	}
	pages[errorPagesPath] = list.Bytes()
	for _, p := range errorPages {
		var page bytes.Buffer
		if err := pageTemplates.ExecuteTemplate(&page, "page", p); err != nil {
			return nil, err
		}
		pages[p.Path()] = page.Bytes()
	}
	return pages, nil
}
