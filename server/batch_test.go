package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"companyscore/internal/account"
	"companyscore/server/api"
	"companyscore/server/cache"
	"companyscore/server/keys"
)

var batchStatuses = withCommon("POST /v1/scores/batch", withBytes("POST /v1/scores/batch", `{"domains":["stored.com"]}`, []attempt{
	{name: "found, missing and invalid", key: "growth", request: "POST /v1/scores/batch",
		body: `{"domains":["www.stored.com","never.com","127.0.0.1"]}`, want: 200,
		has: []string{`{"domain":"stored.com","status":200,"score":{`, `"composite_score":61.4`,
			`{"domain":"never.com","status":404,"error":{"error":"no score`,
			`{"domain":"127.0.0.1","status":400,"error":{"error":"domain invalid"`},
		sends: []string{"Cache-Control", "no-store"}},
	{name: "canned companies", key: "sandbox", request: "POST /v1/scores/batch", body: `{"domains":["acme.test","stored.com"]}`, want: 200,
		has: []string{`"mode":"sandbox"`, `"composite_score":67.2`, `"status":400`}, sends: []string{"Server-Timing", "sandbox"}},
	{name: "no JSON", key: "growth", request: "POST /v1/scores/batch", body: `{"domains":`, want: 400, code: "body invalid"},
	{name: "no domains", key: "growth", request: "POST /v1/scores/batch", body: `{}`, want: 400, code: "body.domains required"},
	{name: "empty list", key: "growth", request: "POST /v1/scores/batch", body: `{"domains":[]}`, want: 400, code: "body.domains invalid"},
	{name: "list of 1,001", key: "growth", request: "POST /v1/scores/batch", body: `{"domains":["a"` + strings.Repeat(`,"a"`, batchMax) +
		`]}`, want: 400, code: "body.domains invalid"},
	{name: "wrong type", key: "growth", request: "POST /v1/scores/batch", body: `{"domains":[1]}`, want: 400, code: "body.domains invalid"},
	{name: "unknown include", key: "growth", request: "POST /v1/scores/batch", body: `{"domains":["stored.com"],"include":["signals"]}`,
		want: 400, code: "body.include invalid"},
	{name: "large body", key: "growth", request: "POST /v1/scores/batch", body: strings.Repeat(" ", batchBodyMax+1), want: 413,
		code: "request too large"},
	{name: "compressed body", key: "growth", request: "POST /v1/scores/batch", body: `{"domains":["stored.com"]}`,
		headers: []string{"Content-Encoding", "gzip"}, want: 415, code: "content encoding not supported"},
	{name: "stores are closed", on: storesClosed, key: "growth", request: "POST /v1/scores/batch", body: `{"domains":["stored.com"]}`,
		want: 500, code: "internal error"},
}))

func TestBatchStatuses(t *testing.T) { tryStatuses(t, "POST /v1/scores/batch", batchStatuses) }

// TestBatchBodyMatchesItsTypes holds the items that are put together by hand to
// what encoding/json makes of them.
func TestBatchBodyMatchesItsTypes(t *testing.T) {
	t.Parallel()
	s := newServer(t, &as{}, new(bytes.Buffer))
	invalid, none := errDomain.body(), errNoScore.body()
	entry := cache.Entry{Head: []byte(`"domain":"xn--bcher-kva.com","svc_rating":"SVC-2+"`)}
	items := []item{{domain: "xn--bcher-kva.com"}, {domain: "<b>\"\u2028", problem: &errDomain}, {domain: "none.com", problem: &errNoScore}}
	want, err := json.Marshal(struct {
		Results []api.BatchItem `json:"results"`
	}{[]api.BatchItem{
		{Domain: items[0].domain, Status: 200, Score: s.scoreBody(entry, true, account.Starter).body},
		{Domain: items[1].domain, Status: 400, Error: &invalid},
		{Domain: items[2].domain, Status: 404, Error: &none},
	}})
	if err != nil {
		t.Fatal(err)
	}
	who := keys.Caller{Mode: account.Live, Account: account.Account{Plan: account.Starter}}
	if got := s.batchBody(who, items, map[string]cache.Entry{items[0].domain: entry}, true); string(got) != string(want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// FuzzBatchSize holds the number of bytes that are reserved for an answer against the
// answer, whatever the caller sent for a domain.
func FuzzBatchSize(f *testing.F) {
	for _, text := range []string{
		"acme.test", "example.com", "", "\x00", "\xff\xfe", strings.Repeat("<", 2048), strings.Repeat("\x01", 2049),
		strings.Repeat("\u2028", 600), "a." + strings.Repeat("\x7f", 2000),
		strings.Repeat("a.", 120) + "test", "xn--" + strings.Repeat("\"", 1000), "user@" + strings.Repeat("\\", 100),
		"a:" + strings.Repeat("\x00", 900),
	} {
		f.Add(text)
	}
	s := newServer(f, &as{}, new(bytes.Buffer))
	f.Fuzz(func(t *testing.T, text string) {
		for _, mode := range []account.Mode{account.Test, account.Live} {
			it := item{domain: text}
			if domain, err := canonical(mode, text, errDomain); err == nil {
				it.domain = domain
			} else if !errors.As(err, &it.problem) {
				t.Fatal(err)
			}
			items := []item{it, it, it}
			body := s.batchBody(keys.Caller{Mode: mode, Account: account.Account{Plan: account.Enterprise}}, items,
				map[string]cache.Entry{it.domain: {Head: make([]byte, 500)}}, true)
			if len(body) > batchSizeMax(items) {
				t.Fatalf("%q: %d bytes, and %d are reserved", text, len(body), batchSizeMax(items))
			}
		}
	})
}
