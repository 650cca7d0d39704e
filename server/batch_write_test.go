package server

import (
	"bufio"
	"bytes"
	"encoding/json"
	"testing"

	"companyscore/server/account"
	"companyscore/server/api"
)

// TestBatchIsWrittenAsItsTypesSay holds the items that are put together by hand to
// what encoding/json makes of them.
func TestBatchIsWrittenAsItsTypesSay(t *testing.T) {
	t.Parallel()
	score := []byte(`{"domain":"xn--bcher-kva.com","svc_rating":"SVC-2+","rank":{"percentile":1}}`)
	items := []item{{domain: "xn--bcher-kva.com"}, {domain: "<b>\"\u2028", problem: &errItemDomain}, {domain: "none.com", problem: &errNoScore}}
	want, err := json.Marshal(struct {
		Results []api.BatchItem `json:"results"`
	}{[]api.BatchItem{
		{Domain: items[0].domain, Status: 200, Score: score},
		{Domain: items[1].domain, Status: 400, Error: &api.Error{Code: errItemDomain.Code, Message: errItemDomain.Message}},
		{Domain: items[2].domain, Status: 404, Error: &api.Error{Code: errNoScore.Code, Message: errNoScore.Message}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	w := bufio.NewWriter(&got)
	writeBatch(w, account.Live, items, map[string]rendered{items[0].domain: {body: score}})
	if err := w.Flush(); err != nil || got.String() != string(want) {
		t.Errorf("got  %s (%v)\nwant %s", got.String(), err, want)
	}
}
