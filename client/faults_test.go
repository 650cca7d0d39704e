package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"companyscore/internal/test/wait"
)

// faulty is a server with faults that the service cannot be made to have. The answers are given in order, the last one for all further
// requests.
type faulty struct {
	answers []http.HandlerFunc

	mu   sync.Mutex
	keys []string // Idempotency-Key of each request
}

func (f *faulty) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	n := min(len(f.keys), len(f.answers)-1)
	f.keys = append(f.keys, r.Header.Get("Idempotency-Key"))
	f.mu.Unlock()
	f.answers[n](w, r)
}

// answers returns a client of a faulty server. pauses are those that it would wait for.
func answers(t *testing.T, handlers ...http.HandlerFunc) (c *Client, server *faulty, pauses *[]time.Duration) {
	t.Helper()
	server = &faulty{answers: handlers}
	s := httptest.NewServer(server)
	t.Cleanup(s.Close)
	c, err := New(Config{URL: s.URL, Key: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	pauses = new([]time.Duration)
	c.sleep = func(ctx context.Context, d time.Duration) error {
		*pauses = append(*pauses, d)
		return ctx.Err()
	}
	return c, server, pauses
}

// requests returns the Idempotency-Key of each request so far.
func (f *faulty) requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.keys)
}

func status(code int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
	}
}

// broken ends the connection without an answer.
func broken(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// cut ends the connection in the middle of an answer.
func cut(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "1000")
	_, _ = w.Write([]byte(`{"domain":`))
}

const accepted = `{"job_id":"j","status":"pending","domain":"a.com","poll_url":"//elsewhere/j"}`

const engine = `{"error":"scoring engine unavailable","message":"It is not known whether the run was started."}`

func TestUnknownOutcomeKeepsItsKey(t *testing.T) {
	t.Parallel()
	c, server, pauses := answers(t, broken, cut, status(500, engine), status(503, `{"error":"unavailable"}`, "Retry-After", "2"),
		status(202, accepted))
	started, err := c.Start(t.Context(), "a.com")
	if err != nil || started.Job == nil || started.Job.ID != "j" {
		t.Fatalf("%+v, %v", started, err)
	}
	keys := server.requests()
	if len(keys) != 5 || keys[0] == "" || len(slices.Compact(keys)) != 1 {
		t.Fatalf("keys %q", server.requests())
	}
	p := *pauses
	for i, longest := range []time.Duration{200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond} {
		if p[i] < longest/2 || p[i] > longest {
			t.Errorf("pause %d is %s, want %s to %s", i, p[i], longest/2, longest)
		}
	}
	if p[3] < 2*time.Second || p[3] > 2200*time.Millisecond {
		t.Errorf("pause %s after Retry-After: 2", p[3])
	}
}

func TestWhatIsRetried(t *testing.T) {
	t.Parallel()
	f := func(answer http.HandlerFunc, requests int, want error) {
		t.Helper()
		c, server, _ := answers(t, answer)
		_, err := c.Score(t.Context(), "a.com")
		if len(server.requests()) != requests || want != nil && !errors.Is(err, want) || err == nil {
			t.Errorf("%d requests, want %d: %v", len(server.requests()), requests, err)
		}
	}
	f(broken, 5, nil)
	f(cut, 5, nil)
	f(status(408, ``), 5, nil)
	f(status(429, `{"error":"rate limited"}`, "Retry-After", "1"), 5, ErrRateLimited)
	f(status(429, `{"error":"rate limited","reason":"per_key_cold_1h"}`, "Retry-After", "31"), 1, ErrRateLimited)
	f(status(429, `{"error":"rate limited"}`, "Retry-After", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)), 1, ErrRateLimited)
	f(status(429, `{"error":"rate limited"}`, "Retry-After", "9999999999999"), 1, ErrRateLimited)
	f(status(429, `{"error":"cold_budget_exhausted","reason":"monthly_cap"}`, "Retry-After", "1"), 1, ErrMonthlyCap)
	f(status(500, `{"error":"internal error"}`), 5, ErrUnavailable)
	f(status(500, `{"error":"sandbox_invariant_violated"}`), 1, ErrUnavailable)
	f(status(501, ``), 1, ErrUnavailable)
	f(status(502, `<html>`), 5, ErrUnavailable)
	f(status(503, ``), 5, ErrUnavailable)
	f(status(504, ``), 5, ErrUnavailable)
	f(status(404, `{"error":"no score available for this domain"}`), 1, ErrNotScored)
	f(status(304, ``), 1, nil) // to a request without a tag
	f(status(200, `{`), 1, nil)
	f(status(200, strings.Repeat(" ", answerMax+1)), 1, nil)
}

func TestRetriesCanBeTurnedOff(t *testing.T) {
	t.Parallel()
	c, server, _ := answers(t, broken)
	c.cfg.Retries = -1
	if _, err := c.Usage(t.Context()); err == nil || len(server.requests()) > 1 {
		t.Errorf("%d requests, %v", len(server.requests()), err)
	}
}

func TestDeadlineEndsRetriesAtOnce(t *testing.T) {
	t.Parallel()
	pause := 2 * wait.Max
	c, server, pauses := answers(t, status(429, `{"error":"rate limited"}`, "Retry-After", fmt.Sprint(pause.Seconds())))
	c.cfg.MaxRetryAfter = pause
	ctx, cancel := context.WithTimeout(t.Context(), wait.Max)
	defer cancel()
	if _, err := c.Score(ctx, "a.com"); !errors.Is(err, ErrRateLimited) || len(server.requests()) != 1 || len(*pauses) != 0 {
		t.Errorf("%d requests, pauses %v, %v", len(server.requests()), *pauses, err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	c.sleep = func(ctx context.Context, _ time.Duration) error { cancel(); return ctx.Err() }
	if _, err := c.Score(ctx, "a.com"); !errors.Is(err, context.Canceled) || !errors.Is(err, ErrRateLimited) {
		t.Errorf("cancelled during a pause: %v", err)
	}
}

// TestKeyStaysWithTheService checks that neither a redirect nor an address in a body makes the client send its key elsewhere.
func TestKeyStaysWithTheService(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the key was sent elsewhere") }))
	t.Cleanup(elsewhere.Close)
	c, _, _ := answers(t, status(307, ``, "Location", elsewhere.URL))
	var refused *Error
	if _, err := c.Score(t.Context(), "a.com"); !errors.As(err, &refused) || refused.Status != 307 {
		t.Errorf("a redirect: %v", err)
	}
	address := strings.TrimPrefix(elsewhere.URL, "http:")
	c, _, _ = answers(t, status(202, strings.ReplaceAll(accepted, "//elsewhere", address)),
		status(200, `{"job_id":"j","status":"pending","domain":"a.com"}`, "Retry-After", "7"),
		status(200, `{"job_id":"j","status":"complete","domain":"a.com","score_url":"`+address+`/a.com"}`),
		status(200, `{"domain":"a.com","composite_score":1,"new":{}}`))
	if s, err := c.ScoreAndWait(t.Context(), "a.com"); err != nil || s.Composite != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestPollsFollowTheService(t *testing.T) {
	t.Parallel()
	c, _, pauses := answers(t, status(202, accepted, "Retry-After", "5"),
		status(200, `{"job_id":"j","status":"pending","domain":"a.com"}`, "Retry-After", "7"),
		status(200, `{"job_id":"j","status":"pending","domain":"a.com"}`),
		status(200, `{"job_id":"j","status":"complete","domain":"a.com"}`))
	started, err := c.Start(t.Context(), "a.com")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Wait(t.Context(), *started.Job); err != nil {
		t.Fatal(err)
	}
	if p := *pauses; len(p) != 3 || p[0] != time.Second || p[1] != 7*time.Second || p[2] != 5*time.Second {
		t.Errorf("pauses %v", p)
	}
}

func TestQuotasOfAnyName(t *testing.T) {
	t.Parallel()
	header := http.Header{
		"Ratelimit-Policy": {`"cold";q=100;w=2678400, "cached";q=10000;w=60;unit="a,b"`},
		"Ratelimit":        {`"cold";r=99;t=842362`, ` "cached" ; r=0 , "a;b";r=1;new=?1, nonsense, "none";t=1, "bad";r=x`},
	}
	want := map[string]Quota{
		"cold":   {Limit: 100, Window: 2678400 * time.Second, Remaining: 99, Reset: 842362 * time.Second},
		"cached": {Limit: 10000, Window: time.Minute},
		"a;b":    {Remaining: 1},
	}
	got := parseQuotas(header)
	if len(got) != len(want) {
		t.Errorf("quotas %+v", got)
	}
	for name, q := range want {
		if got[name] != q {
			t.Errorf("%s: %+v, want %+v", name, got[name], q)
		}
	}
	if got := parseQuotas(http.Header{}); got != nil {
		t.Errorf("quotas of no header: %v", got)
	}
}

func TestMemoryTagsForgetTheOldest(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	body := make([]byte, 1000-itemOverhead-2)
	m := NewMemoryTags(3000)
	for _, key := range []string{"a", "b", "c"} {
		m.Put(ctx, key, Tagged{Tag: "1", Body: body})
	}
	m.Get(ctx, "a")
	m.Put(ctx, "d", Tagged{Tag: "1", Body: body})
	m.Put(ctx, "d", Tagged{Tag: "2", Body: body})
	m.Put(ctx, "e", Tagged{Tag: "1", Body: make([]byte, 3000)})
	for key, want := range map[string]string{"a": "1", "b": "", "c": "1", "d": "2", "e": ""} {
		if got, _ := m.Get(ctx, key); got.Tag != want {
			t.Errorf("%s has tag %q, want %q", key, got.Tag, want)
		}
	}
	if m.bytes > 3000 || len(m.items) != 3 || m.order.Len() != 3 {
		t.Errorf("%d bytes in %d items", m.bytes, len(m.items))
	}
}

func FuzzQuotas(f *testing.F) {
	f.Add(`"cold";r=99;t=842362`, `"cold";q=100;w=2678400`)
	f.Add(`"cold";r=1;t=9999999999999999`, `"cold";q=1;w=9223372036854775807`)
	f.Add(`"a;b,c";r=1 , "d"; r=x;;`, `,;"`)
	f.Fuzz(func(t *testing.T, limit, policy string) {
		for name, q := range parseQuotas(http.Header{"Ratelimit": {limit}, "Ratelimit-Policy": {policy}}) {
			if name == "" || q.Remaining < 0 || q.Limit < 0 || q.Reset < 0 || q.Window < 0 {
				t.Errorf("%q, %q: %q has %+v", limit, policy, name, q)
			}
		}
	})
}

// Behind two servers, the one that answers the read may have an older score than the job's, or none.
func TestScoreAndWaitReturnsTheScoreOfItsJob(t *testing.T) {
	t.Parallel()
	score := func(at string) http.HandlerFunc {
		return status(200, `{"domain":"a.com","scored_at":"2026-05-01T`+at+`Z","svc_rating":"SVC-2"}`)
	}
	complete := status(200,
		`{"job_id":"j","status":"complete","domain":"a.com","result_ref":{"domain":"a.com","scored_at":"2026-05-01T12:00:00.500Z"}}`)
	none := status(404, `{"error":"no score available for this domain","message":"None."}`)
	for _, last := range []string{"12:00:00.500", "12:00:01.000"} {
		c, server, _ := answers(t, status(202, accepted), complete, none, score("12:00:00.499"), score(last))
		got, err := c.ScoreAndWait(t.Context(), "a.com")
		if want := "2026-05-01T" + last + "Z"; err != nil || got.ScoredAt.Format("2006-01-02T15:04:05.000Z") != want ||
			len(server.requests()) != 5 {
			t.Errorf("the score is %+v, %v, after %d requests, want one of %s", got, err, len(server.requests()), want)
		}
	}
	c, server, _ := answers(t, status(202, accepted), complete, score("11:00:00.000"))
	if got, err := c.ScoreAndWait(t.Context(), "a.com"); err == nil || !strings.Contains(err.Error(), "job j") || !got.ScoredAt.IsZero() ||
		len(server.requests()) != 2+readsMax {
		t.Errorf("always an older score: %+v, %v, after %d requests", got, err, len(server.requests()))
	}
	c, server, _ = answers(t, status(202, accepted), complete, none)
	if _, err := c.ScoreAndWait(t.Context(), "a.com"); !errors.Is(err, ErrNotScored) || len(server.requests()) != 2+readsMax {
		t.Errorf("never a score: %v, after %d requests", err, len(server.requests()))
	}
}
