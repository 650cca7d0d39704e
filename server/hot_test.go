package server

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	goredis "github.com/redis/go-redis/v9"
	"github.com/valyala/fasthttp"

	"companyscore/internal/account"
	"companyscore/internal/table"
	"companyscore/scoring"
	"companyscore/server/cache"
	"companyscore/server/meter"
	"companyscore/server/requestlog"
	"companyscore/universe"
)

// one is a store of one company.
type one struct{ scoring.Record }

func (o one) LatestHeads(_ context.Context, domains []string) (map[string]scoring.Record, error) {
	found := make(map[string]scoring.Record)
	for _, domain := range domains {
		if domain == o.Domain {
			found[domain] = o.Record
		}
	}
	return found, nil
}

func (o one) NewestAt(context.Context, []string) (map[string]time.Time, error) {
	return map[string]time.Time{o.Domain: o.ScoredAt}, nil
}

// counted is a universe that never changes.
type counted struct{ tables *universe.Tables }

func (c counted) Tables(time.Time) *universe.Tables { return c.tables }

type counting struct {
	unlimited
	calls atomic.Int64
}

func (c *counting) CountCached(account.Account, time.Time) { c.calls.Add(1) }

var coldIncluded, cachedIncluded int64 = 100, 10_000

func (*counting) Limits(account.Plan) meter.PlanLimits {
	return meter.PlanLimits{FreshnessWindow: time.Hour, ColdCallsIncluded: &coldIncluded, CachedCallsIncluded: &cachedIncluded}
}

func (c *counting) Quota(account.Account, time.Time) (meter.Quota, bool) {
	return meter.Quota{Cold: 7, Cached: c.calls.Load()}, true
}

// hotServer is a server with one company in memory.
func hotServer(t testing.TB) (*Server, *counting) {
	t.Helper()
	return hotServerOf(t, scoring.PipelineVersion)
}

// hotServerOf is hotServer with a score of a pipeline version.
func hotServerOf(t testing.TB, version string) (*Server, *counting) {
	t.Helper()
	rec := scoring.Record{
		PipelineVersion: version, Domain: "example.com", ScoredAt: time.Date(2026, 5, 1, 12, 0, 0, 123e6, time.UTC), Composite: 61.4,
		ScalePremium: 2.1, Rating: scoring.Rating2Plus,
		Buckets: scoring.BucketScores{TeamStructure: 58.1, MarketPosition: 63.7, MomentumTailwinds: 57.9, FinancialHealth: 56},
		Profile: scoring.ProfileGrowth,
		RunID:   "run-1", Confidence: scoring.BandMedium, CompletenessPct: 71.3, Interval: scoring.Interval{Low: 54.9, High: 68.2,
			Level: scoring.IntervalLevel},
	}
	tables, err := universe.New(universe.Snapshot{Counts: universe.Count([]scoring.Record{rec, {Domain: "other.com", Composite: 50,
		Profile: scoring.ProfileGrowth}}, rec.ScoredAt)})
	if err != nil {
		t.Fatal(err)
	}
	calls := new(counting)
	closed := goredis.NewClient(&goredis.Options{})
	if err := closed.Close(); err != nil { // the store answers without it
		t.Fatal(err)
	}
	s, err := New(Dependencies{
		Keys:   &as{Mode: account.Live, KeyID: "key", Account: account.Account{ID: "account", Plan: account.Starter}},
		Scores: struct{ Scores }{}, Cache: cache.New(32<<20, closed, one{rec}, nobody, slog.New(slog.DiscardHandler)),
		Universe: counted{tables},
		Meter:    calls, Jobs: struct{ Jobs }{}, Calls: new(ColdCalls), RequestCounts: struct{ RequestCounts }{},
		Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Cache.Get(t.Context(), rec.Domain); err != nil {
		t.Fatal(err)
	}
	return s, calls
}

// request is a GET as it arrives.
func request(path string, headers ...string) *fasthttp.RequestCtx {
	ctx := new(fasthttp.RequestCtx)
	ctx.Request.Header.SetMethod(http.MethodGet)
	ctx.Request.SetRequestURI(path)
	ctx.Request.Header.Set("X-API-Key", "any")
	for i := 0; i+1 < len(headers); i += 2 {
		ctx.Request.Header.Set(headers[i], headers[i+1])
	}
	return ctx
}

func TestBothWaysGiveTheSameAnswers(t *testing.T) {
	t.Parallel()
	s, calls := hotServer(t)
	tag := ""
	for _, c := range []struct {
		name    string
		headers []string
		status  int
	}{
		{"plain", nil, 200},
		{"with an id", []string{"X-Request-Id", "request-0001"}, 200},
		{"with a bad id", []string{"X-Request-Id", "?"}, 200},
		{"not modified", []string{"If-None-Match", "TAG"}, 304},
		{"one of several", []string{"If-None-Match", `"other", W/TAG`}, 304},
		{"modified", []string{"If-None-Match", `"other"`}, 200},
		{"encodings", []string{"Accept-Encoding", "gzip, br"}, 200},
	} {
		for i := range c.headers {
			c.headers[i] = string(bytes.ReplaceAll([]byte(c.headers[i]), []byte("TAG"), []byte(tag)))
		}
		hot := request("/v1/score/example.com", c.headers...)
		before := calls.calls.Load()
		if !s.hot(hot, time.Now()) {
			t.Fatalf("%s: not answered from memory", c.name)
		}
		counted := calls.calls.Load() - before
		tag = string(hot.Response.Header.Peek("Etag"))

		// which the hot way does not take
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/score/https://www.example.com", nil)
		req.Header.Set("X-API-Key", "any")
		for i := 0; i+1 < len(c.headers); i += 2 {
			req.Header.Set(c.headers[i], c.headers[i+1])
		}
		before = calls.calls.Load()
		res := do(t, s, req)
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != c.status || hot.Response.StatusCode() != c.status || calls.calls.Load()-before != counted ||
			(c.status == 200) != (counted == 1) {
			t.Errorf("%s: %d and %d, counted %d and %d", c.name, hot.Response.StatusCode(), res.StatusCode, counted,
				calls.calls.Load()-before)
		}
		if diff := cmp.Diff(string(body), string(hot.Response.Body())); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		for _, name := range []string{"Content-Type", "Etag", "Cache-Control", "Server-Timing", "Vary", "Ratelimit-Policy"} {
			if got, want := string(hot.Response.Header.Peek(name)), res.Header.Get(name); got != want &&
				!(c.status == 304 && name == "Content-Type") {
				t.Errorf("%s: %s is %q and %q", c.name, name, got, want)
			}
		}
		if id := string(hot.Response.Header.Peek("X-Request-Id")); len(id) != len(res.Header.Get("X-Request-Id")) {
			t.Errorf("%s: ids %q and %q", c.name, id, res.Header.Get("X-Request-Id"))
		}
	}
}

func TestUnusualRequestsGoTheOrdinaryWay(t *testing.T) {
	t.Parallel()
	s, _ := hotServer(t)
	for _, path := range []string{
		"/v1/score/", "/v1/score/www.example.com", "/v1/score/EXAMPLE.com", "/v1/score/example.com/history",
		"/v1/score/https://example.com",
		"/v1/score/example.com.", "/v1/score/never.com", "/v1/score/ex%20ample.com", "/v1/usage", "/", "/v1/score",
	} {
		if s.hot(request(path), time.Now()) {
			t.Errorf("%s was answered", path)
		}
	}
	for _, method := range []string{http.MethodHead, http.MethodPost, http.MethodDelete} {
		ctx := request("/v1/score/example.com")
		ctx.Request.Header.SetMethod(method)
		if s.hot(ctx, time.Now()) {
			t.Errorf("%s was answered", method)
		}
	}
}

func TestRequestIDsAreUUIDs(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(0x0123456789ab)
	a, b := string(appendRequestID(nil, now)), string(appendRequestID(nil, now))
	if len(a) != 36 || a[:13] != "01234567-89ab" || a[14] != '7' || a == b || !bytes.ContainsAny([]byte{a[19]}, "89ab") {
		t.Errorf("got %s and %s", a, b)
	}
}

func BenchmarkHot(b *testing.B) {
	for name, on := range map[string]bool{"log=off": false, "log=on": true} {
		b.Run(name, func(b *testing.B) {
			s, _ := hotServer(b)
			s.Requests = requestlog.Start(requestlog.Config{On: on, HotRows: 1000}, forgetting{}, quiet)
			ctx := request("/v1/score/example.com")
			b.ReportAllocs()
			for b.Loop() {
				ctx.Response.Reset()
				if !s.hot(ctx, time.Now()) {
					b.Fatal("not answered")
				}
			}
			if err := s.Requests.Close(b.Context()); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// forgetting is a store of requests that forgets them.
type forgetting struct{}

func (forgetting) WriteRequests(context.Context, []table.Request) error           { return nil }
func (forgetting) WriteRequestCounts(context.Context, []table.RequestCount) error { return nil }
