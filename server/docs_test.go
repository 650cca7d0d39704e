package server

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/valyala/fasthttp"

	"companyscore/server/openapi"
)

// docsStatuses are of routes that need no key and that the OpenAPI document does not have.
var docsStatuses = []attempt{
	{name: "document", request: "GET /openapi.json", want: 200, has: []string{`"openapi":"3.1.0"`},
		sends: []string{"Content-Type", "application/json", "Cache-Control", "private, max-age=3600"}},
	{name: "known tag", request: "GET /openapi.json", headers: []string{"If-None-Match", "*"}, want: 304},
	{name: "page", request: "GET /docs", want: 200, has: []string{"<html"}, sends: []string{"Content-Type", "text/html; charset=utf-8",
		"Content-Security-Policy", openapi.ContentSecurityPolicy}},
	{name: "file of the page", request: "GET /docs/docs.js", want: 200, sends: []string{"X-Content-Type-Options", "nosniff"}},
	{name: "list of errors", request: "GET /docs/errors", want: 200, has: []string{`href="/docs/errors/window"`},
		sends: []string{"Content-Type", "text/html; charset=utf-8", "Content-Security-Policy", openapi.ContentSecurityPolicy,
			"X-Content-Type-Options", "nosniff"}},
	{name: "page of an error", request: "GET /docs/errors/cold-budget-exhausted", want: 200,
		has: []string{"<h1><code>cold_budget_exhausted</code></h1>", "Status 429.", "\nRetry-After: ",
			"&#34;reason&#34;: &#34;monthly_cap&#34;"},
		sends: []string{"Content-Type", "text/html; charset=utf-8", "Content-Security-Policy", openapi.ContentSecurityPolicy,
			"Cache-Control", "private, max-age=3600"}},
	{name: "page of no error", request: "GET /docs/errors/none", want: 404, code: "not found"},
	{name: "policy of versions", request: "GET /docs/versioning", want: 200, has: []string{"Deprecation", "12 months"},
		sends: []string{"Content-Type", "text/plain; charset=utf-8", "X-Content-Type-Options", "nosniff"}},
	{name: "documents", request: "GET /docs/", want: 200, has: []string{"<h1 id=\"documents\">Documents</h1>", `href="/docs/concepts"`,
		`aria-current="page">Documents</a>`},
		sends: []string{"Content-Type", "text/html; charset=utf-8", "Content-Security-Policy", documentsPolicy, "X-Content-Type-Options",
			"nosniff", "Cache-Control", "private, max-age=3600"}},
	{name: "document", request: "GET /docs/concepts", want: 200, has: []string{`<h2 id="missing-data">`, `src="/docs/images/score.svg"`},
		sends: []string{"Content-Security-Policy", documentsPolicy}},
	{name: "document in a directory", request: "GET /docs/sql/connect/python", want: 200, has: []string{"<h1 id=\"python\">"}},
	{name: "policy of versions as a document", request: "GET /docs/versions", want: 200, has: []string{"<h1 "}},
	{name: "list of decisions", request: "GET /docs/adr", want: 200, has: []string{`href="/docs/adr/0019-console"`}},
	{name: "picture", request: "GET /docs/images/score.svg", want: 200, has: []string{"<svg "},
		sends: []string{"Content-Type", "image/svg+xml", "X-Content-Type-Options", "nosniff"}},
	{name: "search", request: "GET /docs/search?q=Missing+data", want: 200, has: []string{`<a href="/docs/concepts#missing-data">Concepts: Missing data</a>`},
		sends: []string{"Content-Type", "text/html; charset=utf-8", "Content-Security-Policy", documentsPolicy, "X-Content-Type-Options",
			"nosniff"}},
	{name: "search for HTML", request: "GET /docs/search?q=%3Cscript%3E", want: 200, has: []string{"“&lt;script&gt;”"}},
	{name: "empty search", request: "GET /docs/search", want: 200, has: []string{"Enter one or more words"}},
	{name: "unknown document", request: "GET /docs/none", want: 404, code: "not found"},
	{name: "file of a document", request: "GET /docs/concepts.md", want: 404, code: "not found"},
	{name: "unknown file", request: "GET /docs/none.js", want: 404, code: "not found"},
	{name: "unknown address", request: "GET /v2/score", want: 404, code: "not found"},
	{name: "other method", request: "POST /openapi.json", want: 405, code: "method not allowed", sends: []string{"Allow", "GET, HEAD"}},
	{name: "stores are closed", on: storesClosed, request: "GET /docs", want: 200},
}

func TestDocsStatuses(t *testing.T) { tryStatuses(t, "", docsStatuses) }

// The page has files of a megabyte, for anyone to ask for. A compressed copy for each
// client that does not read it would fill the memory.
func TestPageFilesAreCompressedOnce(t *testing.T) {
	t.Parallel()
	s := newServer(t, &as{}, new(bytes.Buffer))
	const path = "/docs/swagger-ui.css"
	file := openapi.Page["swagger-ui.css"].Body
	tags := make(map[string]bool)
	for encoding, decoded := range map[string]func(io.Reader) (io.Reader, error){
		"br":      func(r io.Reader) (io.Reader, error) { return brotli.NewReader(r), nil },
		"gzip":    func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
		"":        func(r io.Reader) (io.Reader, error) { return r, nil },
		"deflate": nil,
	} {
		var bodies [2][]byte
		for i := range bodies {
			var ctx fasthttp.RequestCtx
			ctx.Request.Header.SetMethod(http.MethodGet)
			ctx.Request.SetRequestURI(path)
			ctx.Request.Header.Set("Accept-Encoding", encoding)
			s.handle(&ctx, s.now())
			bodies[i] = ctx.Response.Body()
			if vary := string(ctx.Response.Header.Peek("Vary")); vary != "Accept-Encoding" {
				t.Errorf("%q: Vary is %q", encoding, vary)
			}
		}
		if &bodies[0][0] != &bodies[1][0] {
			t.Errorf("%q: two clients are sent two copies", encoding)
		}
		if decoded == nil {
			continue
		}
		req := httptest.NewRequest(http.MethodGet, path, nil)
		req.Header.Set("Accept-Encoding", encoding)
		res := do(t, s, req)
		r, err := decoded(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(r); err != nil || !bytes.Equal(text, file) || res.Header.Get("Content-Encoding") != encoding ||
			tags[res.Header.Get("Etag")] {
			t.Errorf("%q: %d bytes, %v, %v", encoding, len(text), err, res.Header)
		}
		tags[res.Header.Get("Etag")] = true
		req.Header.Set("If-None-Match", res.Header.Get("Etag"))
		if res := do(t, s, req); res.StatusCode != http.StatusNotModified || res.ContentLength > 0 {
			t.Errorf("%q: with its tag it answers %d", encoding, res.StatusCode)
		}
	}
}
