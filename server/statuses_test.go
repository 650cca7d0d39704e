package server

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"companyscore/internal/account"
	"companyscore/internal/test/openapicheck"
)

// statusTables have the requests that try every status of every operation of the OpenAPI
// document. Each table and its test are in the test file of the handler.
var statusTables = map[string][]attempt{
	"POST /v1/score":                      postScoreStatuses,
	"POST /v1/scores":                     bulkStatuses,
	"POST /v1/scores/batch":               batchStatuses,
	"GET /v1/score/{domain}":              getScoreStatuses,
	"GET /v1/score/{domain}/history":      historyStatuses,
	"GET /v1/score/{domain}/changes":      changesStatuses,
	"GET /v1/score/{domain}/signals":      scoreSignalsStatuses,
	"GET /v1/jobs":                        jobsStatuses,
	"GET /v1/jobs/{job_id}":               jobStatuses,
	"GET /v1/company/{domain}/cohort":     cohortStatuses,
	"GET /v1/company/{domain}/confidence": confidenceStatuses,
	"GET /v1/movers":                      moversStatuses,
	"GET /v1/distribution":                distributionStatuses,
	"GET /v1/signals":                     signalsStatuses,
	"GET /v1/usage":                       usageStatuses,
	"GET /v1/usage/history":               usageHistoryStatuses,
}

// untried are what the document has and no request provokes, with the reason. An entry is an operation
// with a status, or a status with an error.
var untried = map[string]string{
	"500 sandbox_invariant_violated": "only a defect lets a test key reach live data; TestSandboxInvariant calls the guard itself",
}

// TestEveryDescribedStatusIsTried checks that a table tries every status of every operation, and
// that some table tries every error code.
func TestEveryDescribedStatusIsTried(t *testing.T) {
	t.Parallel()
	doc, err := openapicheck.Load()
	if err != nil {
		t.Fatal(err)
	}
	codes := make(map[string]bool)
	for operation, table := range statusTables {
		method, path, _ := strings.Cut(operation, " ")
		if item := doc.Paths.Value(path); item == nil || item.GetOperation(method) == nil {
			t.Errorf("%s is not in the document", operation)
		}
		for _, a := range table {
			codes[fmt.Sprintf("%d %s", a.want, a.code)] = true
		}
	}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			table := statusTables[method+" "+path]
			for status, response := range op.Responses.Map() {
				tried := func(a attempt) bool { return fmt.Sprint(a.want) == status && !a.undescribed() }
				if !slices.ContainsFunc(table, tried) && untried[method+" "+path+" "+status] == "" {
					t.Errorf("no request tries %s %s %s", method, path, status)
				}
				media := response.Value.Content.Get("application/json")
				if media == nil || status < "400" {
					continue
				}
				for _, example := range openapicheck.Examples(media) {
					code := fmt.Sprintf("%s %s", status, example.(map[string]any)["error"])
					if !codes[code] && untried[code] == "" {
						t.Errorf("no request tries %q of %s %s", code, method, path)
					}
				}
			}
		}
	}
	for what := range untried {
		if codes[what] {
			t.Errorf("%q is tried and need not be listed", what)
		}
	}
}

// attempt is a request and the answer that it must get.
type attempt struct {
	name string
	on   condition
	// key is a name of fixture.keys, empty for a request without a key.
	key string
	// request is the method and the path. It may have names of fixture.names in braces.
	request, body string
	// headers are pairs of name and value.
	headers []string

	want int
	// code is the error, reason its reason. Both are empty for an answer below 400.
	code, reason string
	// has has texts that the body contains.
	has []string
	// sends are pairs of header and value that the answer has. A value that ends with "..." is the
	// beginning.
	sends []string
}

// undescribed reports whether the answer is one that all addresses share. The document has these
// in its introduction only.
func (a attempt) undescribed() bool { return a.code == errNotFound.Code || a.code == errMethod.Code }

// withCommon appends the requests that every route with keys answers in the same way.
func withCommon(request string, table []attempt) []attempt {
	_, path, _ := strings.Cut(request, " ")
	large := []string{"X-Filling", strings.Repeat("a", 64<<10)}
	return append(table,
		attempt{name: "without a key", request: request, want: 401, code: "unauthorized"},
		attempt{name: "mistyped key", key: "mistyped", request: request, want: 401, code: "unauthorized"},
		attempt{name: "unknown key", key: "unknown", request: request, want: 401, code: "unauthorized"},
		attempt{name: "revoked key", key: "revoked", request: request, want: 401, code: "unauthorized"},
		attempt{name: "other method", key: "growth", request: "DELETE " + path, want: 405, code: "method not allowed"},
		attempt{name: "large headers", key: "growth", request: request, headers: large, want: 431, code: "request too large"},
		attempt{name: "keys cannot be read", on: keysClosed, key: "growth", request: request, want: 500, code: "internal error"},
	)
}

// The errors of a domain that a key cannot read.
const (
	sandboxOnly = "sandbox: only ['acme.test', 'cohort.test', 'struggling.test', 'unicorn.test'] supported"
	liveOnly    = "test domains require a svc_test_ key"
)

// withDomain appends the requests that every route with a domain in its path answers in the same
// way. The route has %s for the domain.
func withDomain(route string, table []attempt) []attempt {
	request := func(domain string) string { return fmt.Sprintf(route, domain) }
	return withCommon(request("stored.com"), append(table,
		attempt{name: "known tag", key: "growth", request: request("stored.com"), headers: []string{"If-None-Match", "*"}, want: 304,
			sends: []string{"Vary", "Accept-Encoding"}},
		attempt{name: "canned company", key: "sandbox", request: request("acme.test"), want: 200, has: []string{`"mode":"sandbox"`},
			sends: []string{"Server-Timing", "sandbox"}},
		attempt{name: "not a domain", key: "growth", request: request("127.0.0.1"), want: 400, code: "domain invalid",
			sends: []string{"Cache-Control", "no-store"}},
		attempt{name: "real domain with a test key", key: "sandbox", request: request("stored.com"), want: 400, code: sandboxOnly},
		attempt{name: "test domain with a live key", key: "growth", request: request("acme.test"), want: 400, code: liveOnly},
		attempt{name: "further segment", key: "growth", request: request("stored.com/more"), want: 404, code: "not found"},
		attempt{name: "stores are closed", on: storesClosed, key: "growth", request: request("stored.com"), want: 500,
			code: "internal error", sends: []string{"Cache-Control", "no-store"}},
	))
}

// withBytes appends the requests that find no bytes left for their answer.
func withBytes(request, body string, table []attempt) []attempt {
	return append(table,
		attempt{name: "bytes of the key are used", on: keyBytesUsed, key: "growth", request: request, body: body, want: 429,
			code: "rate limited", reason: "answer_bytes", sends: []string{"Retry-After", "1"}},
		attempt{name: "bytes of the server are used", on: allBytesUsed, key: "growth", request: request, body: body, want: 503,
			code: "overloaded", sends: []string{"Retry-After", "1"}},
	)
}

// tryStatuses makes the requests of an operation's table and checks their answers, also against the
// OpenAPI document. An empty operation means that the document does not have it.
func tryStatuses(t *testing.T, operation string, table []attempt) {
	t.Helper()
	t.Parallel()
	f := theFixture(t)
	doc, err := openapicheck.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range table {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel() // two conditions make a request wait for a second
			req, answer := f.exchange(t, a)
			if answer.Status != a.want {
				t.Errorf("status %d, want %d: %s", answer.Status, a.want, answer.Body)
			}
			for _, want := range append(a.has, errorText(a)...) {
				if want = f.names.Replace(want); !strings.Contains(string(answer.Body), want) {
					t.Errorf("the body has no %s: %s", want, answer.Body)
				}
			}
			for i := 0; i < len(a.sends); i += 2 {
				got, want := answer.Header.Get(a.sends[i]), f.names.Replace(a.sends[i+1])
				if begin, cut := strings.CutSuffix(want, "..."); got != want && !(cut && strings.HasPrefix(got, begin)) {
					t.Errorf("%s is %q, want %q", a.sends[i], got, want)
				}
			}
			f.checkQuota(t, a, answer)
			found, err := doc.Check(req, answer)
			if err != nil {
				t.Errorf("not as described: %v", err)
			}
			if found != operation && !a.undescribed() {
				t.Errorf("this is a request of %q, not of %q", found, operation)
			}
		})
	}
}

// checkQuota checks that an answer has the quota of the caller if its key was read, is valid and is
// metered.
func (f *fixture) checkQuota(t *testing.T, a attempt, answer openapicheck.Answer) {
	t.Helper()
	if a.code == errTooLarge.Code {
		return // it may be refused before the key is read
	}
	who, known := f.callers[a.key]
	want := known && a.key != "revoked" && who.Account.Plan != account.Enterprise && a.on != keysClosed && a.on != storesClosed &&
		a.code != errMethod.Code
	policy, rest := answer.Header.Get("RateLimit-Policy"), answer.Header.Get("RateLimit")
	if got := policy != "" && rest != ""; got != want || (policy != "") != (rest != "") {
		t.Errorf("the quota is %q of %q, wanted %v", rest, policy, want)
	}
}

// errorText returns what an error record contains for the code and the reason of an attempt.
func errorText(a attempt) (has []string) {
	if a.code != "" {
		has = append(has, `{"error":"`+a.code+`",`)
	}
	if a.reason != "" {
		has = append(has, `"reason":"`+a.reason+`"`)
	}
	return has
}

// exchange sends the request on a connection of its own and reads the answer.
func (f *fixture) exchange(t *testing.T, a attempt) (*http.Request, openapicheck.Answer) {
	t.Helper()
	method, path, _ := strings.Cut(f.names.Replace(a.request), " ")
	req, err := http.NewRequestWithContext(t.Context(), method, "http://localhost"+path, strings.NewReader(a.body))
	if err != nil {
		t.Fatal(err)
	}
	if a.key != "" {
		key, ok := f.keys[a.key]
		if !ok {
			t.Fatalf("there is no key %q", a.key)
		}
		req.Header.Set("X-API-Key", key)
	}
	for i := 0; i < len(a.headers); i += 2 {
		req.Header.Set(a.headers[i], a.headers[i+1])
	}
	var sent bytes.Buffer
	if err := req.Write(&sent); err != nil {
		t.Fatal(err)
	}
	w := &wire{in: bytes.NewReader(sent.Bytes())}
	f.servers[a.on].newConn(w).serve()
	res, err := http.ReadResponse(bufio.NewReader(&w.out), req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return req, openapicheck.Answer{Status: res.StatusCode, Header: res.Header, Body: body}
}
