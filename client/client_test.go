package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"companyscore/internal/test/program"
	"companyscore/up"
)

// tiers has limits that a test can reach.
const tiers = `
tiers:
  growth: {cold_calls_included: 1}
  enterprise: {cold_calls_included: null}
breakers:
  cold_per_key: {limit: 3, window: 1h}
`

// service is a running `up`, demo its demo account.
var (
	service *program.System
	demo    up.Demo
)

func TestMain(m *testing.M) { os.Exit(serve(m)) }

// serve runs the tests with a running service. The examples find it in the environment, as a customer's program does.
func serve(m *testing.M) int {
	dir, err := os.MkdirTemp("", "cs-client-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "tiers.yaml")
	if err := os.WriteFile(file, []byte(tiers), 0o600); err != nil {
		panic(err)
	}
	built, err := program.Build(dir)
	if err != nil {
		panic(err)
	}
	service = program.New(built, dir, "--tiers", file)
	if err := service.Start(); err != nil {
		panic(err)
	}
	defer func() { _ = service.Stop() }()
	if demo, err = up.ReadDemo(service.Data); err != nil {
		panic(err)
	}
	os.Setenv("COMPANYSCORE_URL", service.Runtime.BaseURL)
	os.Setenv("COMPANYSCORE_KEY", demo.TestKey)
	return m.Run()
}

// command runs a command of the program on the data of the service and reads its JSON into v.
func command(t *testing.T, v any, args ...string) {
	t.Helper()
	out, err := service.Command(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(out), v); err != nil {
		t.Fatalf("read %q: %v", out, err)
	}
}

// liveKey returns a live key of a new account.
func liveKey(t *testing.T, tier string) string {
	t.Helper()
	var made struct {
		ID  string `json:"account_id"`
		Key string `json:"api_key"`
	}
	command(t, &made, "account", "create", "--name", t.Name(), "--tier", tier, "--json")
	command(t, &made, "key", "create", "--account", made.ID, "--mode", "live", "--json")
	return made.Key
}

// counter counts the requests of a client.
type counter struct{ requests atomic.Int64 }

func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	c.requests.Add(1)
	return http.DefaultTransport.RoundTrip(r)
}

// newClient returns a client of the service and the counter of its requests.
func newClient(t *testing.T, key string) (*Client, *counter) {
	t.Helper()
	sent := new(counter)
	c, err := New(Config{URL: service.Runtime.BaseURL, Key: key, HTTPClient: &http.Client{Transport: sent}})
	if err != nil {
		t.Fatal(err)
	}
	return c, sent
}

// TestAbortedRunIsATypedError stops the worker meanwhile, so it is not parallel.
func TestAbortedRunIsATypedError(t *testing.T) {
	worker := service.Runtime.Processes["worker"]
	if err := syscall.Kill(worker, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(worker, syscall.SIGCONT) }()
	c, _ := newClient(t, liveKey(t, "enterprise"))
	ctx, cancel := context.WithCancel(t.Context())
	c.cfg.OnPoll = func(Job, time.Duration) { cancel() }
	_, err := c.ScoreAndWait(ctx, "aborted-client.com")
	var pending *PendingError
	if !errors.As(err, &pending) || !errors.Is(err, context.Canceled) || pending.Job.Domain != "aborted-client.com" ||
		!strings.Contains(err.Error(), pending.Job.ID) {
		t.Fatalf("the wait ended with %v", err)
	}
	var list struct{ Runs []struct{ ID, Domain string } }
	command(t, &list, "run", "list", "--output", "json")
	at := slices.IndexFunc(list.Runs, func(r struct{ ID, Domain string }) bool { return r.Domain == "aborted-client.com" })
	if at < 0 {
		t.Fatalf("no run in %+v", list)
	}
	if _, err := service.Command(t.Context(), "run", "abort", list.Runs[at].ID); err != nil {
		t.Fatal(err)
	}
	c.cfg.OnPoll = nil
	_, err = c.Wait(t.Context(), pending.Job)
	var failed *RunError
	if !errors.As(err, &failed) || failed.Job.FailureReason != "sfn_aborted" || !strings.Contains(err.Error(), "sfn_aborted") {
		t.Errorf("the wait for the aborted run ended with %v", err)
	}
}

func TestRunIsStartedAndRead(t *testing.T) {
	t.Parallel()
	c, sent := newClient(t, liveKey(t, "starter"))
	if _, err := c.Score(t.Context(), "run-client.com"); !errors.Is(err, ErrNotScored) {
		t.Fatalf("before the run: %v", err)
	}
	polls := 0
	c.cfg.OnPoll = func(j Job, _ time.Duration) {
		if polls++; j.Domain != "run-client.com" || j.Status != "pending" {
			t.Errorf("poll of %+v", j)
		}
	}
	s, err := c.ScoreAndWait(t.Context(), "https://www.Run-Client.com/about", WithEvidence())
	if err != nil || s.Domain != "run-client.com" || s.Composite != 50 || s.Rating != "SVC-3" || s.Evidence == nil ||
		s.Evidence.Interval.Level != 90 || polls == 0 {
		t.Fatalf("score %+v, %v after %d polls", s, err, polls)
	}
	started, err := c.Start(t.Context(), "run-client.com")
	if err != nil || started.Job != nil || started.Score == nil || started.Score.Evidence != nil {
		t.Errorf("with a fresh score: %+v, %v", started, err)
	}
	if q := started.Score.Response.Quotas["cold"]; q.Limit == 0 || q.Remaining != q.Limit-1 || q.Window < 28*24*time.Hour || q.Reset <= 0 {
		t.Errorf("quota %+v", q)
	}
	if s.Response.RequestID == "" || !bytes.Contains(s.Response.Body, []byte(`"evidence"`)) {
		t.Errorf("response %+v", s.Response)
	}
	records := 0
	for r, err := range c.History(t.Context(), "run-client.com") {
		if records++; err != nil || r.Composite != 50 {
			t.Errorf("history: %+v, %v", r, err)
		}
	}
	if records != 1 {
		t.Errorf("%d records", records)
	}
	sent.requests.Store(0)
	domains := make([]string, 2500)
	for i := range domains {
		domains[i] = fmt.Sprintf("never-%d.com", i)
	}
	domains[0], domains[1000], domains[2499] = "run-client.com", "10.0.0.1", "www.run-client.com"
	items, err := c.Batch(t.Context(), domains, WithEvidence())
	if err != nil || len(items) != len(domains) || sent.requests.Load() != 3 {
		t.Fatalf("%d items in %d requests, %v", len(items), sent.requests.Load(), err)
	}
	for i, item := range items {
		switch i {
		case 0, 2499:
			if item.Err != nil || item.Domain != "run-client.com" || item.Score.Composite != 50 || item.Score.Evidence == nil ||
				item.Score.Response.RequestID == "" {
				t.Errorf("item %d: %+v", i, item)
			}
		case 1000:
			if !errors.Is(item.Err, ErrInvalidDomain) {
				t.Errorf("item %d: %v", i, item.Err)
			}
		default:
			if !errors.Is(item.Err, ErrNotScored) || item.Domain != domains[i] {
				t.Fatalf("item %d: %+v", i, item)
			}
		}
	}
}

func TestIdempotencyKeyIsChargedOnce(t *testing.T) {
	t.Parallel()
	c, _ := newClient(t, liveKey(t, "enterprise"))
	first, err := c.Start(t.Context(), "once-client.com", IdempotencyKey("order-1"), ForceFresh())
	if err != nil || first.Job == nil {
		t.Fatalf("%+v, %v", first, err)
	}
	again, err := c.Start(t.Context(), "once-client.com", IdempotencyKey("order-1"), ForceFresh())
	if err != nil || again.Job == nil || again.Job.ID != first.Job.ID {
		t.Errorf("%+v, %v; want job %s", again, err, first.Job.ID)
	}
	other, err := c.Start(t.Context(), "once-client.com", ForceFresh())
	if err != nil || other.Job == nil || other.Job.ID == first.Job.ID {
		t.Errorf("without the key: %+v, %v; want another job than %s", other, err, first.Job.ID)
	}
	if u, err := c.Usage(t.Context()); err != nil || u.ColdCalls != 2 || u.Limits.ColdCallsIncluded != nil {
		t.Errorf("usage %+v, %v", u, err)
	}
}

// loser loses the first answers, after the service has executed the requests.
type loser struct{ left atomic.Int64 }

func (l *loser) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && l.left.Add(-1) >= 0 {
		res.Body.Close()
		return nil, errors.New("the answer was lost")
	}
	return res, err
}

func TestLostAnswersAreChargedOnce(t *testing.T) {
	t.Parallel()
	lossy := new(loser)
	lossy.left.Store(3)
	c, err := New(Config{URL: service.Runtime.BaseURL, Key: liveKey(t, "enterprise"), HTTPClient: &http.Client{Transport: lossy}})
	if err != nil {
		t.Fatal(err)
	}
	c.sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	started, err := c.Start(t.Context(), "lost-client.com")
	if err != nil || started.Job == nil || lossy.left.Load() >= 0 {
		t.Fatalf("%+v, %v, %d answers to lose", started, err, lossy.left.Load())
	}
	if u, err := c.Usage(t.Context()); err != nil || u.ColdCalls != 1 {
		t.Errorf("usage %+v, %v", u, err)
	}
}

func TestUnchangedReadsAreFree(t *testing.T) {
	t.Parallel()
	c, _ := newClient(t, liveKey(t, "starter"))
	if _, err := c.ScoreAndWait(t.Context(), "free-client.com"); err != nil {
		t.Fatal(err)
	}
	before, err := c.Usage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	first, err := c.Score(t.Context(), "free-client.com")
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		again, err := c.Score(t.Context(), "free-client.com")
		if err != nil || !again.Response.NotModified || again.Composite != first.Composite ||
			!bytes.Equal(again.Response.Body, first.Response.Body) {
			t.Fatalf("%+v, %v", again, err)
		}
	}
	after, err := c.Usage(t.Context())
	if err != nil || after.CachedCalls > before.CachedCalls+1 {
		t.Errorf("%d cached calls, before %d, %v", after.CachedCalls, before.CachedCalls, err)
	}
}

func TestRefusalsAreSentinels(t *testing.T) {
	t.Parallel()
	live, _ := newClient(t, demo.LiveKey)
	test, _ := newClient(t, demo.TestKey)
	free, _ := newClient(t, liveKey(t, "free"))
	unknown, _ := newClient(t, "svc_live_unknown")
	job, err := live.Start(t.Context(), "job-client.com")
	if err != nil {
		t.Fatal(err)
	}
	other, _ := newClient(t, liveKey(t, "starter"))
	score := func(c *Client, domain string) error { _, err := c.Score(t.Context(), domain); return err }
	start := func(c *Client, domain string) error { _, err := c.Start(t.Context(), domain); return err }
	poll := func(c *Client, id string) error { _, err := c.Job(t.Context(), id); return err }
	for name, c := range map[string]struct {
		err    error
		want   error
		status int
	}{
		"unknown key":        {score(unknown, "a.com"), ErrUnauthorized, 401},
		"never scored":       {score(live, "never.com"), ErrNotScored, 404},
		"no domain":          {score(live, "10.0.0.1"), ErrInvalidDomain, 400},
		"no domain to start": {start(live, "localhost"), ErrInvalidDomain, 400},
		"empty domain":       {start(live, ""), ErrInvalidDomain, 400},
		"test key":           {score(test, "a.com"), ErrWrongMode, 400},
		"live key":           {start(live, "acme.test"), ErrWrongMode, 400},
		"free tier":          {start(free, "a.com"), ErrFreeTier, 403},
		"other's job":        {poll(other, job.Job.ID), ErrForbidden, 403},
		"unknown job":        {poll(live, "01a1fc94-05cf-764e-800e-9c3462621484"), ErrJobNotFound, 404},
	} {
		var refused *Error
		if !errors.Is(c.err, c.want) || !errors.As(c.err, &refused) || refused.Status != c.status || refused.RequestID == "" ||
			refused.Message == "" {
			t.Errorf("%s: %#v", name, c.err)
		}
		for _, sentinel := range []error{ErrUnauthorized, ErrNotScored, ErrInvalidDomain, ErrWrongMode, ErrFreeTier, ErrMonthlyCap,
			ErrRateLimited, ErrForbidden, ErrJobNotFound, ErrUnavailable} {
			if sentinel != c.want && errors.Is(c.err, sentinel) {
				t.Errorf("%s is also %v", name, sentinel)
			}
		}
	}
	for _, err := range history(t, live, "never.com") {
		if !errors.Is(err, ErrNotScored) {
			t.Errorf("history of a company without a score: %v", err)
		}
	}
	if _, err := test.Movers(t.Context(), "8d"); err == nil || !strings.Contains(err.Error(), "window must be one of") {
		t.Errorf("unknown window: %v", err)
	}
}

// history returns the errors that History yields.
func history(t *testing.T, c *Client, domain string) (errs []error) {
	t.Helper()
	for _, err := range c.History(t.Context(), domain) {
		errs = append(errs, err)
	}
	if len(errs) == 0 {
		t.Errorf("the history of %s yields nothing", domain)
	}
	return errs
}

func TestLimitsOfColdCalls(t *testing.T) {
	t.Parallel()
	for tier, c := range map[string]struct {
		calls int
		want  error
	}{"growth": {1, ErrMonthlyCap}, "enterprise": {3, ErrRateLimited}} {
		client, sent := newClient(t, liveKey(t, tier))
		for i := range c.calls {
			if _, err := client.Start(t.Context(), fmt.Sprintf("%s-%d-client.com", tier, i)); err != nil {
				t.Fatal(err)
			}
		}
		sent.requests.Store(0)
		_, err := client.Start(t.Context(), "one-too-many-client.com")
		var refused *Error
		if !errors.Is(err, c.want) || !errors.As(err, &refused) || refused.RetryAfter < time.Minute ||
			!strings.Contains(err.Error(), "Retry in ") {
			t.Errorf("%s: %#v", tier, err)
		}
		if n := sent.requests.Load(); n != 1 {
			t.Errorf("%s: %d requests, want 1 without retries", tier, n)
		}
		if q, ok := refused.Quotas["cold"]; tier == "growth" && (!ok || q.Remaining != 0 || q.Limit != 1) {
			t.Errorf("quotas of the refusal: %+v", refused.Quotas)
		}
	}
}

// TestNoFieldIsLeftOut reads an answer of each operation with types that must have all its fields.
func TestNoFieldIsLeftOut(t *testing.T) {
	t.Parallel()
	c, sent := newClient(t, demo.TestKey)
	f := func(name string, body json.RawMessage, err error, into any) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		decoder := json.NewDecoder(bytes.NewReader(body))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(into); err != nil {
			t.Errorf("%s: %v in %s", name, err, body)
		}
		if name != "signals" && !bytes.Contains(body, []byte(`"mode":"sandbox"`)) {
			t.Errorf("%s: %s", name, body)
		}
	}
	ctx := t.Context()
	for range 2 { // the second time with tags
		score, err := c.Score(ctx, "unicorn.test", WithEvidence())
		f("score", score.Response.Body, err, new(Score))
		page, err := c.HistoryPage(ctx, "acme.test", "", 2)
		f("history", page.Response.Body, err, new(HistoryPage))
		scoreSignals, err := c.ScoreSignals(ctx, "acme.test", time.Now())
		f("signals of a score", scoreSignals.Response.Body, err, new(ScoreSignals))
		then, err := c.ScoreAt(ctx, "acme.test", time.Now().AddDate(0, 0, -3), WithEvidence())
		f("score of an instant", then.Response.Body, err, new(Score))
		many, err := c.StartMany(ctx, []string{"acme.test", "unicorn.test"}, WithEvidence())
		f("scores of many", many.Response.Body, err, new(struct {
			Mode    string      `json:"mode"`
			Summary ManySummary `json:"summary"`
			Results []struct {
				Domain string `json:"domain"`
				Status int    `json:"status"`
				Score  Score  `json:"score"`
			} `json:"results"`
		}))
		changes, err := c.Changes(ctx, "acme.test", time.Now().AddDate(0, 0, -3), time.Time{})
		f("changes", changes.Response.Body, err, new(Changes))
		cohort, err := c.Cohort(ctx, "cohort.test")
		f("cohort", cohort.Response.Body, err, new(Cohort))
		confidence, err := c.Confidence(ctx, "struggling.test")
		f("confidence", confidence.Response.Body, err, new(Confidence))
		movers, err := c.Movers(ctx, Month, WithEvidence())
		f("movers", movers.Response.Body, err, new(Movers))
		distribution, err := c.Distribution(ctx)
		f("distribution", distribution.Response.Body, err, new(Distribution))
		usage, err := c.Usage(ctx)
		f("usage", usage.Response.Body, err, new(Usage))
		signals, err := c.Signals(ctx)
		f("signals", signals.Response.Body, err, new(Manifest))
	}
	if n := sent.requests.Load(); n != 24 {
		t.Errorf("%d requests", n)
	}
}

// A portfolio is scored with one call: as many as the budget allows, then all jobs are waited for together.
func TestManyAreStartedAndRead(t *testing.T) {
	t.Parallel()
	c, _ := newClient(t, liveKey(t, "growth")) // one cold call a month
	ctx := t.Context()
	domains := []string{"many-one.com", "https://www.many-two.com/about"}
	dry, err := c.StartMany(ctx, domains, DryRun(), Partial())
	if err != nil || !dry.DryRun || dry.Summary != (ManySummary{Started: 1, Refused: 1}) || len(dry.Jobs()) != 0 {
		t.Fatalf("dry run = %+v, %v", dry, err)
	}
	if _, err := c.StartMany(ctx, domains); !errors.Is(err, ErrMonthlyCap) {
		t.Fatalf("all of two with a budget of one: %v", err)
	}
	key := IdempotencyKey("portfolio")
	first, err := c.StartMany(ctx, domains, Partial(), key)
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.StartMany(ctx, domains, Partial(), key)
	if err != nil || len(again.Jobs()) != 1 || again.Jobs()[0].ID != first.Jobs()[0].ID {
		t.Fatalf("repeated call = %+v, %v; first %+v", again, err, first)
	}
	if item := first.Items[1]; item.Domain != "many-two.com" || item.Status != 429 || !errors.Is(item.Err, ErrMonthlyCap) {
		t.Errorf("refused company = %+v", item)
	}
	jobs, err := c.WaitMany(ctx, first.Jobs())
	if err != nil || len(jobs) != 1 || jobs[0].Status != "complete" || jobs[0].Domain != "many-one.com" {
		t.Fatalf("jobs = %+v, %v", jobs, err)
	}
	stored, err := c.StartMany(ctx, domains[:1], WithEvidence())
	if err != nil || stored.Items[0].Score == nil || stored.Items[0].Score.Evidence == nil || stored.Summary != (ManySummary{Stored: 1}) {
		t.Fatalf("stored score = %+v, %v", stored, err)
	}
	other, _ := newClient(t, liveKey(t, "starter"))
	items, err := other.Jobs(ctx, jobs[0].ID, "none")
	if err != nil || !errors.Is(items[0].Err, ErrForbidden) || !errors.Is(items[1].Err, ErrJobNotFound) {
		t.Errorf("jobs of another account = %+v, %v", items, err)
	}
}

func TestHistoryReadsAllPages(t *testing.T) {
	t.Parallel()
	c, _ := newClient(t, demo.TestKey)
	var paged []HistoryRecord
	for cursor, pages := "", 0; ; pages++ {
		page, err := c.HistoryPage(t.Context(), "acme.test", cursor, 2)
		if err != nil {
			t.Fatal(err)
		}
		paged = append(paged, page.Records...)
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	var all []HistoryRecord
	for r, err := range c.History(t.Context(), "acme.test") {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	if len(all) < 4 || !slices.Equal(all, paged) {
		t.Errorf("%d records, %d in pages", len(all), len(paged))
	}
	for range c.History(t.Context(), "acme.test") {
		break // a loop may end early
	}
	var span []HistoryRecord
	for r, err := range c.History(t.Context(), "acme.test", OldestFirst(), From(all[len(all)-2].ScoredAt), Until(all[0].ScoredAt)) {
		if err != nil {
			t.Fatal(err)
		}
		span = append(span, r)
	}
	want := slices.Clone(all[1 : len(all)-1])
	if slices.Reverse(want); !slices.Equal(span, want) {
		t.Errorf("span = %+v, want %+v", span, want)
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cfg  Config
		says []string
	}{
		"nothing":      {Config{}, []string{"URL", "API key"}},
		"no scheme":    {Config{URL: "127.0.0.1:8080", Key: "k"}, []string{"127.0.0.1:8080"}},
		"line in key":  {Config{URL: "http://a", Key: "k\n"}, []string{"API key"}},
		"query in URL": {Config{URL: "http://a/?b=c", Key: "k"}, []string{"URL"}},
	} {
		_, err := New(c.cfg)
		for _, text := range c.says {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if _, err := New(Config{URL: "https://scores.example.com/prefix/", Key: "svc_live_x"}); err != nil {
		t.Error(err)
	}
}

func TestConnectionsAreKept(t *testing.T) {
	t.Parallel()
	c, err := New(Config{URL: service.Runtime.BaseURL, Key: demo.TestKey})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	transport := c.http.Transport.(*http.Transport)
	var dials atomic.Int64
	dial := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		dials.Add(1)
		return dial(ctx, network, address)
	}
	const callers, calls = 32, 25
	var running sync.WaitGroup
	for range callers {
		running.Go(func() {
			for range calls {
				if _, err := c.Score(t.Context(), "acme.test"); err != nil {
					t.Error(err)
					return
				}
				if _, err := c.Score(t.Context(), "example.com"); !errors.Is(err, ErrWrongMode) {
					t.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
	// A connection may be freed while another is dialled for the same call.
	if n := dials.Load(); n > 2*callers {
		t.Errorf("%d connections for %d callers with %d calls each", n, callers, 2*calls)
	}
}
