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
	"companyscore/server/directory"
)

// TestBatchIsWrittenAsItsTypesSay holds the items that are put together by hand to
// what encoding/json makes of them.
func TestBatchIsWrittenAsItsTypesSay(t *testing.T) {
	t.Parallel()
	s := newServer(t, &as{}, new(bytes.Buffer))
	entry := cache.Entry{Head: []byte(`"domain":"xn--bcher-kva.com","svc_rating":"SVC-2+"`)}
	items := []item{{domain: "xn--bcher-kva.com"}, {domain: "<b>\"\u2028", problem: &errItemDomain}, {domain: "none.com", problem: &errNoScore}}
	want, err := json.Marshal(struct {
		Results []api.BatchItem `json:"results"`
	}{[]api.BatchItem{
		{Domain: items[0].domain, Status: 200, Score: s.scoreBody(entry, true, account.Starter).body},
		{Domain: items[1].domain, Status: 400, Error: &api.Error{Code: errItemDomain.Code, Message: errItemDomain.Message}},
		{Domain: items[2].domain, Status: 404, Error: &api.Error{Code: errNoScore.Code, Message: errNoScore.Message}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	who := directory.Caller{Mode: account.Live, Account: account.Account{Tier: account.Starter}}
	if got := s.batchBody(who, items, map[string]cache.Entry{items[0].domain: entry}, true); string(got) != string(want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// FuzzBatchSize holds the number of bytes that are reserved for an answer against the
// answer, whatever the caller sent for a domain.
func FuzzBatchSize(f *testing.F) {
	for _, text := range []string{
		"acme.test", "example.com", "", "\x00", "\xff\xfe", strings.Repeat("<", 2048), strings.Repeat("\x01", 2049), strings.Repeat("\u2028", 600), "a." + strings.Repeat("\x7f", 2000),
		strings.Repeat("a.", 120) + "test", "xn--" + strings.Repeat("\"", 1000), "user@" + strings.Repeat("\\", 100), "a:" + strings.Repeat("\x00", 900),
	} {
		f.Add(text)
	}
	s := newServer(f, &as{}, new(bytes.Buffer))
	f.Fuzz(func(t *testing.T, text string) {
		for _, mode := range []account.Mode{account.Test, account.Live} {
			it := item{domain: text}
			if domain, err := canonical(mode, text, errItemDomain); err == nil {
				it.domain = domain
			} else if !errors.As(err, &it.problem) {
				t.Fatal(err)
			}
			items := []item{it, it, it}
			body := s.batchBody(directory.Caller{Mode: mode, Account: account.Account{Tier: account.Enterprise}}, items, map[string]cache.Entry{it.domain: {Head: make([]byte, 500)}}, true)
			if len(body) > batchSizeMax(items) {
				t.Fatalf("%q: %d bytes, and %d are reserved", text, len(body), batchSizeMax(items))
			}
		}
	})
}
