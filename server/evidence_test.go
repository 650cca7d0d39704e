package server

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"companyscore/internal/account"
)

// provenance is the evidence of the company of hotServer.
const provenance = `,"evidence":{"pipeline_version":"v2","run_id":"run-1","band":"medium","data_completeness_pct":71.3,"interval":{"low":54.9,"high":68.2,"level":90}}`

// answered returns the answer of the server to a request with its body.
func answered(t *testing.T, s *Server, method, path, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	req.Header.Set("X-API-Key", "any")
	if body != "" {
		req.Header.Set("Content-Length", strconv.Itoa(len(body)))
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res := do(t, s, req)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(text)
}

// TestEvidenceIsAnsweredFromMemory compares the hot path with the routes, and both with the plain body.
func TestEvidenceIsAnsweredFromMemory(t *testing.T) {
	t.Parallel()
	s, meter := hotServer(t)
	plain := request("/v1/score/example.com")
	if !s.hot(plain, time.Now()) {
		t.Fatal("the plain body is not in memory")
	}
	plainTag := string(plain.Response.Header.Peek("Etag"))
	tag := ""
	for _, c := range []struct {
		name, known string
		status      int
	}{{"first", "", 200}, {"known", "TAG", 304}, {"plain body is known", plainTag, 200}} {
		known := strings.ReplaceAll(c.known, "TAG", tag)
		hot := request("/v1/score/example.com?include=evidence", "If-None-Match", known)
		before := meter.calls.Load()
		if !s.hot(hot, time.Now()) {
			t.Fatalf("%s: not answered from memory", c.name)
		}
		counted := meter.calls.Load() - before
		before = meter.calls.Load()
		res, body := answered(t, s, http.MethodGet, "/v1/score/https://www.example.com?include=evidence", "", "If-None-Match", known)
		if hot.Response.StatusCode() != c.status || res.StatusCode != c.status || meter.calls.Load()-before != counted ||
			(c.status == 200) != (counted == 1) {
			t.Errorf("%s: %d and %d, counted %d and %d", c.name, hot.Response.StatusCode(), res.StatusCode, counted,
				meter.calls.Load()-before)
		}
		if diff := cmp.Diff(body, string(hot.Response.Body())); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		for _, name := range []string{"Etag", "Cache-Control", "Server-Timing"} {
			if got, want := string(hot.Response.Header.Peek(name)), res.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q and %q", c.name, name, got, want)
			}
		}
		if tag = res.Header.Get("ETag"); tag == plainTag {
			t.Errorf("%s: both bodies have the tag %s", c.name, tag)
		}
		if rest := strings.Replace(body, provenance, "", 1); c.status == 200 && (rest == body || rest != string(plain.Response.Body())) {
			t.Errorf("%s: %s without %s is not the plain body", c.name, body, provenance)
		}
	}
}

func TestIncludeTakesAListOfNames(t *testing.T) {
	t.Parallel()
	live, _ := hotServer(t)
	sandbox := newServer(t, &as{Mode: account.Test, Account: account.Account{Plan: account.Starter}}, new(bytes.Buffer))
	const unknownQuery, unknownField = `"include must be one of ['evidence']"`, `"body.include invalid"`
	for _, c := range []struct {
		server             *Server
		method, path, body string
		status             int
		has                string // "" for a plain score
	}{
		{live, "GET", "/v1/score/example.com?include=evidence", "", 200, provenance},
		{live, "GET", "/v1/score/example.com?include=evidence,evidence", "", 200, provenance},
		{live, "GET", "/v1/score/example.com?x=1&include=evidence", "", 200, provenance},
		{live, "GET", "/v1/score/example.com?include=evidence&include=evidence", "", 200, provenance},
		{live, "GET", "/v1/score/example.com?x=1", "", 200, ""},
		{live, "GET", "/v1/score/example.com?include=signals", "", 400, unknownQuery},
		{live, "GET", "/v1/score/example.com?include=", "", 400, unknownQuery},
		{live, "GET", "/v1/score/example.com?include=evidence,signals", "", 400, unknownQuery},
		{live, "GET", "/v1/score/example.com?include=evidence&include=signals", "", 400, unknownQuery},
		{live, "GET", "/v1/score/example.com?include=Evidence", "", 400, unknownQuery},
		{live, "POST", "/v1/scores/batch", `{"domains":["example.com"],"include":["evidence"]}`, 200, provenance},
		{live, "POST", "/v1/scores/batch", `{"domains":["example.com"],"include":[]}`, 200, ""},
		{live, "POST", "/v1/scores/batch", `{"domains":["example.com"],"include":null}`, 200, ""},
		{live, "POST", "/v1/scores/batch", `{"domains":["example.com"],"include":["signals"]}`, 400, unknownField},
		{live, "POST", "/v1/scores/batch", `{"domains":["example.com"],"include":"evidence"}`, 400, unknownField},
		{live, "POST", "/v1/scores/batch", `{"domains":["example.com"],"include":[1]}`, 400, unknownField},
		{live, "POST", "/v1/score", `{"domain":"example.com","include":["signals"]}`, 400, unknownField},
		{live, "POST", "/v1/score", `{"domain":"example.com","include":{}}`, 400, unknownField},
		{sandbox, "POST", "/v1/score", `{"domain":"acme.test","include":["evidence"]}`, 200, `,"evidence":{"pipeline_version":"v2",`},
		{sandbox, "POST", "/v1/score", `{"domain":"acme.test","include":[]}`, 200, ""},
		{sandbox, "POST", "/v1/scores/batch", `{"domains":["acme.test"],"include":["evidence"]}`, 200,
			`,"evidence":{"pipeline_version":"v2",`},
		{sandbox, "GET", "/v1/score/acme.test?include=evidence", "", 200, `,"evidence":{"pipeline_version":"v2",`},
		{sandbox, "GET", "/v1/score/acme.test?include=signals", "", 400, unknownQuery},
	} {
		res, body := answered(t, c.server, c.method, c.path, c.body)
		if res.StatusCode != c.status || !strings.Contains(body, c.has) || c.has == "" && (strings.Contains(body, "evidence") ||
			!strings.Contains(body, "composite_score")) {
			t.Errorf("%s %s %s: %d %s, want %d with %s", c.method, c.path, c.body, res.StatusCode, body, c.status, c.has)
		}
	}
}

func BenchmarkHotEvidence(b *testing.B) {
	s, _ := hotServer(b)
	ctx := request("/v1/score/example.com?include=evidence")
	b.ReportAllocs()
	for b.Loop() {
		ctx.Response.Reset()
		if !s.hot(ctx, time.Now()) {
			b.Fatal("not answered")
		}
	}
}
