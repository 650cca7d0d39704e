package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"companyscore/clickhouse"
	"companyscore/internal/account"
	"companyscore/internal/test/stores"
	"companyscore/server/requestlog"
)

// loggedServer is a server of the fixture on a port of loopback, with a log of requests in a
// database of its own.
type loggedServer struct {
	fixture  *fixture
	url      string // of the server
	database string
	store    *clickhouse.Requests
	log      *requestlog.Log
}

func startLogged(t *testing.T) loggedServer {
	t.Helper()
	l := loggedServer{fixture: theFixture(t), database: stores.ClickHouse(t)}
	db, err := clickhouse.Open(t.Context(), clickhouse.Config{URL: l.database})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.store = clickhouse.NewRequests(db)
	l.log = requestlog.Start(requestlog.Config{On: true, HotRows: 10_000}, l.store, quiet)
	parts := l.fixture.servers[healthy].Dependencies
	parts.Metrics, parts.Requests, parts.RequestCounts = prometheus.NewRegistry(), l.log, l.store
	s, err := New(parts)
	if err != nil {
		t.Fatal(err)
	}
	s.now = func() time.Time { return noon }
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ln) }()
	t.Cleanup(func() {
		if err := s.Shutdown(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
		<-ended
	})
	l.url = "http://" + ln.Addr().String()
	return l
}

// seen is what a client counts requests by.
type seen struct {
	Account, Key, Route, Code, AnsweredBy string
	Status                                int
}

// sums are the requests of one kind.
type sums struct{ Calls, Charged, Bytes int }

// sent is a request of a test and its expected route and error code.
type sent struct {
	key, method, path, body, route, code string
	headers                              []string
}

// send sends a request and returns the answer with its kind.
func (l loggedServer) send(t *testing.T, client *http.Client, r sent) (id string, kind seen, bytes int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), r.method, l.url+r.path, strings.NewReader(r.body))
	if err != nil {
		t.Error(err)
		return "", seen{}, 0
	}
	kind = seen{Route: r.route, Code: r.code, AnsweredBy: "none"}
	if r.key != "" {
		req.Header.Set("X-API-Key", l.fixture.keys[r.key])
		if r.route != "none" {
			kind.Account, kind.Key = l.fixture.callers[r.key].Account.ID, l.fixture.callers[r.key].KeyID
		}
	}
	for i := 0; i < len(r.headers); i += 2 {
		req.Header.Set(r.headers[i], r.headers[i+1])
	}
	res, err := client.Do(req)
	if err != nil {
		t.Error(err)
		return "", seen{}, 0
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	var problem struct {
		Error string `json:"error"`
	}
	_ = json.Unmarshal(body, &problem)
	if r.key == "logged" { // reaches its limit of cold calls
		kind.Code = problem.Error
	} else if problem.Error != r.code {
		t.Errorf("%s %s: error %q, want %q", r.method, r.path, problem.Error, r.code)
	}
	if from := res.Header.Get("Server-Timing"); from != "" {
		kind.AnsweredBy = from
	}
	kind.Status = res.StatusCode
	return res.Header.Get("X-Request-Id"), kind, len(body)
}

// query returns the counts of a view.
func (l loggedServer) query(t *testing.T, statement string) map[seen]sums {
	t.Helper()
	var out bytes.Buffer
	if err := clickhouse.QueryHTTP(t.Context(), stores.PrivateOf(l.database), statement, "JSONEachRow", &out); err != nil {
		t.Fatal(err)
	}
	counts := make(map[seen]sums)
	for d := json.NewDecoder(&out); d.More(); {
		var row struct {
			seen
			Calls, Charged, Bytes json.Number
		}
		if err := d.Decode(&row); err != nil {
			t.Fatal(err)
		}
		number := func(n json.Number) int { i, _ := n.Int64(); return int(i) }
		counts[row.seen] = sums{number(row.Calls), number(row.Charged), number(row.Bytes)}
	}
	return counts
}

func TestEveryAnswerIsRecorded(t *testing.T) {
	t.Parallel()
	l := startLogged(t)
	const clients, rounds = 4, 20
	own := make(map[seen]sums)
	ids := make(map[string]seen)
	var mu sync.Mutex
	var ended sync.WaitGroup
	for c := range clients {
		ended.Go(func() {
			client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
			defer client.CloseIdleConnections()
			for i := range rounds {
				for _, r := range []sent{
					{key: "growth", method: "GET", path: "/v1/score/stored.com", route: hotRoute},
					{key: "starter", method: "GET", path: "/v1/score/stored.com?include=evidence", route: hotRoute},
					{key: "growth", method: "GET", path: "/v1/score/stored.com", route: hotRoute, headers: []string{"If-None-Match", "*",
						"X-Request-Id", fmt.Sprintf("mine-%d-%d", c, i)}},
					{key: "growth", method: "HEAD", path: "/v1/score/stored.com", route: hotRoute},
					{key: "growth", method: "GET", path: "/v1/score/never.com", route: hotRoute, code: errNoScore.Code},
					{key: "growth", method: "GET", path: "/v1/score/127.0.0.1", route: hotRoute, code: errDomain.Code},
					{method: "GET", path: "/v1/score/stored.com", route: hotRoute, code: errUnauthorized.Code},
					{key: "revoked", method: "GET", path: "/v1/usage", route: "/v1/usage", code: errUnauthorized.Code},
					{key: "sandbox", method: "POST", path: "/v1/score", body: `{"domain":"acme.test"}`, route: "/v1/score"},
					{key: "logged", method: "POST", path: "/v1/score", body: fmt.Sprintf(`{"domain":"recorded-%d-%d.com"}`, c, i),
						route: "/v1/score"},
					{key: "growth", method: "POST", path: "/v1/scores/batch", body: `{"domains":["stored.com","never.com"]}`,
						route: "/v1/scores/batch"},
					{key: "growth", method: "GET", path: "/v1/movers?window=7d", route: "/v1/movers"},
					{key: "growth", method: "GET", path: "/nowhere", route: noRoute, code: errNotFound.Code},
					{key: "growth", method: "GET", path: "/v1/nowhere", route: noRoute, code: errNotFound.Code},
					{key: "growth", method: "DELETE", path: "/v1/usage", route: noRoute, code: errMethod.Code},
					{key: "growth", method: "BREW", path: "/v1/usage", route: noRoute, code: errMethod.Code},
					{key: "growth", method: "GET", path: "/v1/usage", route: noRoute, code: errHeadersTooLarge.Code,
						headers: []string{"X-Filling", strings.Repeat("a", 64<<10)}},
				} {
					if r.key == "revoked" {
						r.key, r.headers = "", []string{"X-API-Key", l.fixture.keys["revoked"]}
					}
					id, kind, size := l.send(t, client, r)
					mu.Lock()
					n := own[kind]
					n.Calls++
					n.Bytes += size
					if kind.Status == 202 {
						n.Charged++
					}
					own[kind], ids[id] = n, kind
					mu.Unlock()
				}
			}
		})
	}
	ended.Wait()
	if err := l.log.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	const columns = "account_id AS Account, key_id AS Key, route AS Route, error_code AS Code, answered_by AS AnsweredBy, status AS " +
		"Status, "
	const groups = " GROUP BY Account, Key, Route, Code, AnsweredBy, Status"
	if diff := cmp.Diff(own,
		l.query(t, "SELECT "+columns+"sum(r.calls) AS Calls, sum(r.charged) AS Charged, sum(r.bytes) AS Bytes FROM v1_request_minute AS r"+
			groups)); diff != "" {
		t.Errorf("counts, - of the clients, + of the log:\n%s", diff)
	}
	if diff := cmp.Diff(own,
		l.query(t, "SELECT "+columns+"count() AS Calls, countIf(r.charged) AS Charged, sum(r.bytes) AS Bytes FROM v1_request AS r"+
			groups)); diff != "" {
		t.Errorf("rows, - of the clients, + of the log:\n%s", diff)
	}
	if len(own) < 15 || len(ids) != clients*rounds*17 {
		t.Errorf("%d kinds of answers with %d ids", len(own), len(ids))
	}
	checked := make(map[int]bool)
	for id, kind := range ids {
		if checked[kind.Status] {
			continue
		}
		checked[kind.Status] = true
		got, err := l.store.FindRequests(t.Context(), id, "", 2)
		if err != nil || len(got) != 1 || int(got[0].Status) != kind.Status || got[0].Route != kind.Route ||
			got[0].AccountID != kind.Account || (got[0].JobID != "") != (kind.Status == 202) {
			t.Errorf("request %s with status %d has %+v, %v", id, kind.Status, got, err)
		}
	}
}

func TestSandboxInvariantIsLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := newServer(t, &as{Mode: "neither", KeyID: "key", Account: account.Account{ID: "account", Plan: account.Starter}}, &log)
	for range 2 {
		log.Reset()
		res, e := get(t, s, "/v1/distribution")
		if id := res.Header.Get("X-Request-Id"); res.StatusCode != 500 || e.Code != errSandboxInvariant.Code ||
			!strings.Contains(log.String(), "level=ERROR") || !strings.Contains(log.String(), "request="+id) ||
			!strings.Contains(log.String(), e.Code) {
			t.Errorf("answered %d %s with id %s and logged %q", res.StatusCode, e.Code, id, log.String())
		}
	}
}
