package console

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"companyscore/internal/account"
)

// requestsMax bounds the requests of a list.
const requestsMax = 100

// requestSpans are the ages of requests that a list may have.
var requestSpans = []struct {
	Name string
	Span time.Duration
}{{"1h", time.Hour}, {"24h", 24 * time.Hour}, {"7d", 7 * 24 * time.Hour}, {"30d", 30 * 24 * time.Hour}}

type requestsBody struct {
	ID, Key, Status, Span string // of the form
	Keys                  []account.Key
	Names                 map[string]string // of keys by id
	Spans                 []string
	Requests              []account.Request
	Full                  bool // there are more
	Fault                 string
}

func (c *Console) requests(v *visit) (err error) {
	query := v.r.URL.Query()
	get := func(name string) string { return strings.TrimSpace(strings.Clone(query.Get(name))) }
	body := requestsBody{ID: get("id"), Key: get("key"), Status: get("status"), Span: get("span"), Names: make(map[string]string)}
	if body.Keys, err = c.Store.Keys(v.ctx(), v.account.ID); err != nil {
		return err
	}
	for _, key := range body.Keys {
		body.Names[key.ID] = key.Name
	}
	since := time.Duration(0)
	for _, span := range requestSpans {
		body.Spans = append(body.Spans, span.Name)
		if span.Name == body.Span {
			since = span.Span
		}
	}
	if since == 0 {
		body.Span, since = "24h", 24*time.Hour
	}
	status, err := strconv.ParseUint(body.Status, 10, 16)
	if body.Status != "" && (err != nil || status < 100 || status > 599) {
		body.Fault, status = "A status is a number of 100 to 599.", 0
	}
	if body.ID != "" {
		if body.Requests, err = c.Store.FindRequests(v.ctx(), body.ID, requestsMax); err != nil {
			return err
		}
		body.Requests = slices.DeleteFunc(body.Requests, func(r account.Request) bool { return !v.maySee(r) })
	} else {
		body.Requests, err = c.Store.ListRequests(v.ctx(), v.account.ID, c.now().Add(-since), body.Key, uint16(status), requestsMax)
		if err != nil {
			return err
		}
	}
	body.Full = len(body.Requests) == requestsMax
	return v.render("requests", "Requests", "requests", body)
}

// maySee reports whether a request is of the account of the session, or the session is an operator's.
func (v *visit) maySee(r account.Request) bool {
	return r.AccountID == v.account.ID || v.session.Operator
}

type requestBody struct {
	Requests []explained
	ID       string
}

// explained is a request with the meaning of its error.
type explained struct {
	account.Request
	Key     string // name of the key
	Refusal *Refusal
	Answer  string // what answered it, in words
}

// answers describes what answered a request, by the values of Server-Timing.
var answers = map[string]string{
	"none": "No stored data was read.", "sandbox": "Canned data of the sandbox.", "l1": "Memory of the server: the company was read recently.",
	"table": "Memory of the server: statistics that all callers share.", "redis": "Redis: another server had read the company.", "clickhouse": "ClickHouse: the record itself.",
}

func (c *Console) request(v *visit) error {
	id := strings.Clone(v.r.PathValue("id"))
	found, err := c.Store.FindRequests(v.ctx(), id, requestsMax)
	if err != nil {
		return err
	}
	keys, err := c.Store.Keys(v.ctx(), v.account.ID)
	if err != nil {
		return err
	}
	body := requestBody{ID: id}
	for _, r := range found {
		if !v.maySee(r) {
			continue
		}
		x := explained{Request: r, Answer: answers[r.AnsweredBy]}
		if refusal, ok := c.Refusals[r.ErrorCode]; ok {
			x.Refusal = &refusal
		}
		for _, key := range keys {
			if key.ID == r.KeyID {
				x.Key = key.Name
			}
		}
		body.Requests = append(body.Requests, x)
	}
	if len(body.Requests) == 0 {
		return errNotFound.with("There is no request %s of this account in the last 30 days. Rows are written within seconds; scores answered from memory in large numbers are counted and have no row.", id)
	}
	return v.render("request", "Request", "requests", body)
}
