package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"companyscore/internal/table"
)

const byOneOf = "by must be one of ['day','key','route','status']"

var usageHistoryStatuses = withCommon("GET /v1/usage/history", []attempt{
	{name: "days", key: "starter", request: "GET /v1/usage/history?from={minute}&to={minute after}", want: 200, has: []string{
		`"user_id":"account of starter","from":"`,
		`"by":"day","rows":[{"group":"{date}","calls":11,"cold_calls":0,"errors":2,"bytes":4400,"mean_ms":1.5}]`,
	}, sends: []string{"Cache-Control", "no-store", "Server-Timing", "clickhouse"}},
	{name: "routes", key: "starter", request: "GET /v1/usage/history?by=route&from={date}&to={minute after}", want: 200,
		has: []string{`[{"group":"/v1/score/*","calls":10,`, `{"group":"/v1/movers","calls":1,`}},
	{name: "statuses", key: "starter", request: "GET /v1/usage/history?by=status&to={minute after}", want: 200,
		has: []string{`{"group":"404","calls":2,"cold_calls":0,"errors":2,`}},
	{name: "keys", key: "starter", request: "GET /v1/usage/history?by=key&to={minute after}", want: 200, has: []string{`"calls":11,`}},
	{name: "default range", key: "starter", request: "GET /v1/usage/history", want: 200,
		has: []string{`"from":"2026-04-01T12:00:00.000Z","to":"2026-05-01T12:01:00.000Z","by":"day","rows":[]`}},
	{name: "seconds", key: "starter", request: "GET /v1/usage/history?from=2026-05-01T11:00:59Z&to=2026-05-01T11:00:59Z", want: 200,
		has: []string{`"from":"2026-05-01T11:00:00.000Z","to":"2026-05-01T11:01:00.000Z"`}},
	{name: "minute before", key: "starter", request: "GET /v1/usage/history?to={minute}", want: 200, has: []string{`"rows":[]`}},
	{name: "other account", key: "growth", request: "GET /v1/usage/history?to={minute after}", want: 200, has: []string{`"rows":[]`}},
	{name: "test key", key: "sandbox", request: "GET /v1/usage/history?by=key", want: 200,
		has: []string{`"mode":"sandbox"`, `"group":"canned-key-1"`}, sends: []string{"Server-Timing", "sandbox"}},
	{name: "not an instant", key: "starter", request: "GET /v1/usage/history?from=yesterday", want: 400, code: "from invalid",
		sends: []string{"Cache-Control", "no-store"}},
	{name: "not a day", key: "sandbox", request: "GET /v1/usage/history?to=2026-02-30", want: 400, code: "to invalid"},
	{name: "from after to", key: "starter", request: "GET /v1/usage/history?from=2026-05-02&to=2026-05-01", want: 400,
		code: "from invalid"},
	{name: "31 days", key: "starter", request: "GET /v1/usage/history?from=2026-04-01&to=2026-05-02", want: 200},
	{name: "more than 31 days", key: "starter", request: "GET /v1/usage/history?from=2026-04-01&to=2026-05-02T00:00:01Z", want: 400,
		code: "from invalid", has: []string{"at most 31 days"}},
	{name: "unknown grouping", key: "starter", request: "GET /v1/usage/history?by=company", want: 400, code: byOneOf},
	{name: "empty grouping", key: "sandbox", request: "GET /v1/usage/history?by=", want: 400, code: byOneOf},
	{name: "POST", key: "starter", request: "POST /v1/usage/history", want: 405, code: "method not allowed",
		sends: []string{"Allow", "GET, HEAD"}},
	{name: "other histories are read", on: allBytesUsed, key: "starter", request: "GET /v1/usage/history", want: 503, code: "overloaded",
		sends: []string{"Retry-After", "1", "Cache-Control", "no-store"}},
	{name: "stores are closed", on: storesClosed, key: "growth", request: "GET /v1/usage/history", want: 500, code: "internal error",
		sends: []string{"Cache-Control", "no-store"}},
})

func TestUsageHistoryStatuses(t *testing.T) {
	tryStatuses(t, "GET /v1/usage/history", usageHistoryStatuses)
}

// slowHistories reads no history before release is closed. entered receives the account of each read.
type slowHistories struct {
	RequestCounts
	entered chan string
	release chan struct{}
}

func (h slowHistories) RequestGroups(ctx context.Context, accountID string, from, to time.Time, by string) ([]table.RequestGroup, error) {
	h.entered <- accountID
	select {
	case <-h.release:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return h.RequestCounts.RequestGroups(ctx, accountID, from, to, by)
}

func TestOneAccountLeavesAPlaceForHistoriesOfOthers(t *testing.T) {
	t.Parallel()
	f := theFixture(t)
	parts := f.servers[healthy].Dependencies
	slow := slowHistories{parts.RequestCounts, make(chan string, 100), make(chan struct{})}
	parts.Metrics, parts.RequestCounts = prometheus.NewRegistry(), slow
	s, err := New(parts)
	if err != nil {
		t.Fatal(err)
	}
	s.now = func() time.Time { return noon }
	read := func(key string) *http.Response {
		req := httptest.NewRequest(http.MethodGet, "/v1/usage/history", nil)
		req.Header.Set("X-API-Key", f.keys[key])
		res, err := s.app.Test(req, -1)
		if err != nil {
			t.Error(err)
			return &http.Response{}
		}
		res.Body.Close()
		return res
	}
	const calls = 3
	statuses := make(chan int, calls+1)
	for range calls {
		go func() { statuses <- read("starter").StatusCode }()
	}
	first := <-slow.entered
	for range calls - 1 { // they wait until the first is read
		if got := <-statuses; got != http.StatusServiceUnavailable {
			t.Errorf("a further history of the account: status %d, want 503", got)
		}
	}
	go func() { statuses <- read("growth").StatusCode }()
	if second := <-slow.entered; first != "account of starter" || second != "account of growth" {
		t.Errorf("histories are read for %q and %q", first, second)
	}
	if res := read("enterprise"); res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") != "1" {
		t.Errorf("a third history at once: status %d, Retry-After %q", res.StatusCode, res.Header.Get("Retry-After"))
	}
	close(slow.release)
	for range 2 {
		if got := <-statuses; got != http.StatusOK {
			t.Errorf("a history that has a place: status %d", got)
		}
	}
}
