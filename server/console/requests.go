package console

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	"companyscore/internal/account"
	"companyscore/internal/table"
)

// RequestStore has what the pages of requests read.
type RequestStore interface {
	Keys(ctx context.Context, accountID string) ([]account.Key, error)
	// FindRequests returns the newest requests with an id; an empty account selects all accounts.
	FindRequests(ctx context.Context, id, accountID string, limit int) ([]table.Request, error)
	// ListRequests returns the newest requests since an instant; an empty key and a zero
	// status select all.
	ListRequests(ctx context.Context, accountID string, since time.Time, keyID string, status uint16, limit int) ([]table.Request, error)
}

// requestsMax bounds the requests of a list.
const requestsMax = 100

// requestSpans are the ages of requests that a list may have.
var requestSpans = []struct {
	Name string
	Span time.Duration
}{{"1h", time.Hour}, {"24h", 24 * time.Hour}, {"7d", 7 * 24 * time.Hour}, {"30d", 30 * 24 * time.Hour}}

type requestsBody struct {
	ID, Account, Key, Status, Span string // of the form; only operators name an account
	Keys                           []account.Key
	Names                          map[string]string // of keys by id
	Spans                          []string
	Requests                       []table.Request
	More                           bool // there are older ones
	Fault                          string
}

func (c *Console) requests(v *visit) (err error) {
	query := v.r.URL.Query()
	get := func(name string) string { return strings.TrimSpace(query.Get(name)) }
	body := requestsBody{ID: get("id"), Account: v.wantedAccount(), Key: get("key"), Status: get("status"), Span: get("span"),
		Names: make(map[string]string)}
	listed := cmp.Or(body.Account, v.account.ID)
	if body.Keys, err = c.Stores.Requests.Keys(v.ctx(), listed); err != nil {
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
		body.Requests, err = c.Stores.Requests.FindRequests(v.ctx(), body.ID, v.foundAccount(), requestsMax+1)
	} else {
		body.Requests, err = c.Stores.Requests.ListRequests(v.ctx(), listed, c.now().Add(-since), body.Key, uint16(status), requestsMax+1)
	}
	if err != nil {
		return err
	}
	body.Requests, body.More = newestOf(body.Requests)
	return v.render("requests", "Requests", "requests", body)
}

// newestOf returns the first requestsMax requests, and whether there are more.
func newestOf(requests []table.Request) (first []table.Request, more bool) {
	return requests[:min(len(requests), requestsMax)], len(requests) > requestsMax
}

// wantedAccount returns the account that an operator has named in the address. It is empty if none
// is named, and for customers.
func (v *visit) wantedAccount() string {
	if !v.session.Operator {
		return ""
	}
	return strings.TrimSpace(v.r.URL.Query().Get("account"))
}

// foundAccount returns the account whose requests an id finds: the one of the session, or for an
// operator the wanted one, empty for all.
func (v *visit) foundAccount() string {
	if v.session.Operator {
		return v.wantedAccount()
	}
	return v.account.ID
}

type requestBody struct {
	Requests []explained
	ID       string
	More     bool // there are older ones
}

// explained is a request with the meaning of its error.
type explained struct {
	table.Request
	Key     string // name of the key
	Refusal *Refusal
	Answer  string // what answered it, in words
}

// answers describes what answered a request, by the values of Server-Timing.
var answers = map[string]string{
	"none": "No stored data was read.", "sandbox": "Canned data of the sandbox.",
	"l1":    "Memory of the server: the company was read recently.",
	"table": "Memory of the server: statistics that all callers share.", "redis": "Redis: another server had read the company.",
	"clickhouse": "ClickHouse: the record itself.",
}

func (c *Console) request(v *visit) error {
	id := v.r.PathValue("id")
	found, err := c.Stores.Requests.FindRequests(v.ctx(), id, v.foundAccount(), requestsMax+1)
	if err != nil {
		return err
	}
	keys, err := c.Stores.Requests.Keys(v.ctx(), v.account.ID)
	if err != nil {
		return err
	}
	body := requestBody{ID: id}
	found, body.More = newestOf(found)
	for _, r := range found {
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
		return errNotFound.with("There is no request %s of this account in the last 30 days. Rows are written within seconds; scores "+
			"answered from memory in large numbers are counted and have no row.", id)
	}
	return v.render("request", "Request", "requests", body)
}
