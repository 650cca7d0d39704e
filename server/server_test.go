package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"companyscore/internal/account"
	"companyscore/server/api"
	"companyscore/server/cache"
	"companyscore/server/job"
	"companyscore/server/keys"
	"companyscore/server/meter"
	"companyscore/universe"
)

// The contract tests hold this room against live stores. Here is what no live
// store does.

type panicking struct{}

func (panicking) Verify(context.Context, string) (keys.Caller, error) { panic("boom") }

func (panicking) Peek([]byte, time.Time) *keys.Caller { return nil }

// as is a directory that knows one caller.
type as keys.Caller

func (a *as) Verify(context.Context, string) (keys.Caller, error) {
	return keys.Caller(*a), nil
}

func (a *as) Peek([]byte, time.Time) *keys.Caller { return (*keys.Caller)(a) }

type noTables struct{}

func (noTables) Tables(time.Time) *universe.Tables { return nil }

// unlimited is a meter without limits.
type unlimited struct{ Meter }

func (unlimited) Limits(account.Plan) meter.PlanLimits {
	return meter.PlanLimits{FreshnessWindow: time.Hour}
}
func (unlimited) CountCached(account.Account, time.Time) {}

func (unlimited) Quota(account.Account, time.Time) (meter.Quota, bool) { return meter.Quota{}, true }

// nobody hears which companies are asked for.
func nobody(string) {}

func newServer(t testing.TB, keys Keys, log *bytes.Buffer) *Server {
	t.Helper()
	s, err := New(Dependencies{
		Keys: keys, Scores: struct {
			Scores
		}{}, Cache: cache.New(1<<20, nil, struct{ cache.Store }{}, nobody, slog.New(slog.DiscardHandler)), Universe: noTables{},
		Meter: unlimited{}, Jobs: (*job.Jobs)(nil),
		Calls: new(ColdCalls), RequestCounts: struct{ RequestCounts }{}, Metrics: prometheus.NewRegistry(),
		Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// do has a connection of the server answer a request.
func do(t *testing.T, s *Server, req *http.Request) *http.Response {
	t.Helper()
	sent, err := httputil.DumpRequest(req, true)
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{in: bytes.NewReader(sent)}
	s.newConn(w).serve()
	res, err := http.ReadResponse(bufio.NewReader(&w.out), req)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func get(t *testing.T, s *Server, path string) (*http.Response, api.Error) {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	req.Header.Set("X-API-Key", "any")
	res := do(t, s, req)
	defer res.Body.Close()
	var e api.Error
	if err := json.NewDecoder(res.Body).Decode(&e); err != nil {
		t.Fatal(err)
	}
	return res, e
}

func TestPanicIsAnInternalError(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	res, e := get(t, newServer(t, panicking{}, &log), "/v1/usage")
	id := res.Header.Get("X-Request-Id")
	if res.StatusCode != 500 || e.Code != "internal error" || id == "" || !strings.Contains(e.Message, id) {
		t.Errorf("answered %d %+v", res.StatusCode, e)
	}
	if strings.Contains(e.Message, "boom") || !strings.Contains(log.String(), "boom") ||
		!strings.Contains(log.String(), "server_test.go") || !strings.Contains(log.String(), id) {
		t.Errorf("the cause and its stack belong in the log only: %s", log.String())
	}
}

func TestConfigNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	_, err := New(Dependencies{})
	for _, field := range []string{"Keys", "Scores", "Cache", "Universe", "Meter", "Calls", "Jobs", "Metrics", "Logger"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("New of nothing = %v, want %s named", err, field)
		}
	}
}

func TestMatches(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]bool{
		`"a"`: true, `W/"a"`: true, `"b", "a"`: true, `"b",W/"a-gzip"`: true, "*": true, `"a-br"`: true,
		"": false, "a": false, `"b"`: false, `"a`: false, ",,": false, `"a-x"`: false,
	} {
		if got := matches(header, `"a"`); got != want {
			t.Errorf("matches(%q) = %v", header, got)
		}
	}
}
