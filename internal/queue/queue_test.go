package queue_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	goredis "github.com/redis/go-redis/v9"

	"companyscore/internal/queue"
	"companyscore/internal/redis"
	"companyscore/internal/test/stores"
	"companyscore/internal/test/wait"
	"companyscore/scoring"
)

func TestMain(m *testing.M) {
	if os.Getenv(victimURL) != "" {
		runVictim()
		return
	}
	goredis.SetLogger(noLog{}) // tests kill servers; go-redis would tell of every dial
	os.Exit(m.Run())
}

type noLog struct{}

func (noLog) Printf(context.Context, string, ...any) {}

var quiet = slog.New(slog.DiscardHandler)

func connect(t *testing.T, url string) goredis.UniversalClient {
	t.Helper()
	client, err := redis.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func newQueue(t *testing.T, url string, cfg queue.Config) *queue.Queue {
	t.Helper()
	cfg.Logger = quiet
	q, err := queue.New(connect(t, url), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// runLog remembers what it is told.
type runLog struct {
	mu   sync.Mutex
	runs map[string]scoring.Run
	down error
}

func (l *runLog) WriteRuns(_ context.Context, runs []scoring.Run) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down != nil {
		return l.down
	}
	if l.runs == nil {
		l.runs = make(map[string]scoring.Run)
	}
	for _, run := range runs {
		l.runs[run.ID] = run
	}
	return nil
}

func (l *runLog) get(id string) (scoring.Run, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	run, ok := l.runs[id]
	return run, ok
}

// each makes a handler of what is done with one run.
func each(do func(context.Context, scoring.Run) (time.Time, error)) queue.Handler {
	return func(ctx context.Context, runs []scoring.Run, _ func(int) bool) []scoring.Outcome {
		outcomes := make([]scoring.Outcome, len(runs))
		for i, run := range runs {
			outcomes[i].ScoredAt, outcomes[i].Err = do(ctx, run)
		}
		return outcomes
	}
}

// beating configures a worker that looks after its runs every third of a second and sweeps no others.
func beating(log queue.RunLog) queue.ServerConfig {
	return queue.ServerConfig{Log: log, Lease: time.Second, Sweep: time.Hour}
}

// work starts a worker that does one run at a time, and returns the function that
// shuts it down.
func work(t *testing.T, q *queue.Queue, cfg queue.ServerConfig, do func(context.Context, scoring.Run) (time.Time,
	error)) (stop func() error) {
	t.Helper()
	return workGroups(t, q, cfg, each(do))
}

// workGroups is work for a handler of groups.
func workGroups(t *testing.T, q *queue.Queue, cfg queue.ServerConfig, handler queue.Handler) (stop func() error) {
	t.Helper()
	if cfg.Log == nil {
		cfg.Log = &runLog{}
	}
	server, err := queue.NewServer(q, cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx, handler) }()
	stop = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() { stop() })
	return stop
}

// waitFor waits until a run has a state.
func waitFor(t *testing.T, q *queue.Queue, id string, state scoring.RunState) scoring.Run {
	t.Helper()
	var run scoring.Run
	wait.Until(t, fmt.Sprintf("run %s is %s", id, state), func() bool {
		var err error
		run, err = q.Get(context.WithoutCancel(t.Context()), id)
		return err == nil && run.State == state
	})
	return run
}

// isNow fails the test unless a run has a state already.
func isNow(t *testing.T, q *queue.Queue, id string, state scoring.RunState) scoring.Run {
	t.Helper()
	run, err := q.Get(context.WithoutCancel(t.Context()), id)
	if err != nil || run.State != state {
		t.Fatalf("run %s is %s, %v; want %s", id, run.State, err, state)
	}
	return run
}

// start starts runs in the bulk lane.
func start(t *testing.T, q *queue.Queue, domains ...string) []scoring.Run {
	t.Helper()
	ids, err := q.Start(t.Context(), scoring.LaneBulk, domains...)
	if err != nil {
		t.Fatal(err)
	}
	runs, err := q.GetMany(t.Context(), ids...)
	if err != nil {
		t.Fatal(err)
	}
	return runs
}

// open is how many runs have not ended.
func open(t *testing.T, q *queue.Queue) int {
	t.Helper()
	status, err := q.Status(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	return status.Open()
}

func succeed(_ context.Context, run scoring.Run) (time.Time, error) { return run.StartedAt, nil }

func TestRunGoesThroughItsStates(t *testing.T) {
	t.Parallel()
	server := stores.Redis(t)
	client := connect(t, server.URL)
	q := newQueue(t, server.URL, queue.Config{TTL: time.Hour})
	run := start(t, q, "acme.com")[0]
	if run.State != scoring.RunQueued || run.Domain != "acme.com" || run.Lane != scoring.LaneBulk || run.CreatedAt.IsZero() {
		t.Errorf("started run = %+v", run)
	}
	log := &runLog{}
	seen := make(chan scoring.Run, 1)
	work(t, q, queue.ServerConfig{Log: log}, func(_ context.Context, run scoring.Run) (time.Time, error) {
		seen <- run
		return run.StartedAt, nil
	})
	if during := <-seen; during.State != scoring.RunRunning || during.Attempts != 1 || during.StartedAt.IsZero() {
		t.Errorf("run that the handler got = %+v", during)
	}
	ended := waitFor(t, q, run.ID, scoring.RunSucceeded)
	if !ended.ScoredAt.Equal(ended.StartedAt) || ended.FinishedAt.IsZero() || ended.Error != "" {
		t.Errorf("ended run = %+v", ended)
	}
	wait.Until(t, "the run is in the log", func() bool { _, ok := log.get(run.ID); return ok })
	if logged, _ := log.get(run.ID); logged != ended {
		t.Errorf("logged run = %+v, want %+v", logged, ended)
	}
	for _, key := range []string{redis.InFlight("acme.com"), redis.Lane("bulk"), redis.Turns("bulk"), redis.Leases()} {
		if client.Exists(t.Context(), key).Val() != 0 {
			t.Errorf("%s is left behind", key)
		}
	}
	if ttl := client.TTL(t.Context(), redis.Run(run.ID)).Val(); ttl < 59*time.Minute || ttl > time.Hour {
		t.Errorf("ended run lives for %s, want an hour", ttl)
	}
	if next := start(t, q, "acme.com")[0]; next.ID == run.ID {
		t.Error("a domain whose run has ended got the same run again")
	}
}

func TestStartJoinsRunUnderWay(t *testing.T) {
	t.Parallel()
	q := newQueue(t, stores.Redis(t).URL, queue.Config{})
	runs := start(t, q, "a.com", "b.com", "a.com")
	if runs[0].ID != runs[2].ID || runs[0].ID == runs[1].ID || runs[1].Domain != "b.com" {
		t.Errorf("Start(a, b, a) = %+v", runs)
	}
	if n := open(t, q); n != 2 {
		t.Errorf("%d runs are open, want 2", n)
	}
	var wg sync.WaitGroup
	ids := make([]string, 50)
	for i := range ids {
		wg.Go(func() {
			started, err := q.Start(t.Context(), scoring.LaneBulk, "c.com")
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = started[0]
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("concurrent starts of one domain gave runs %s and %s", ids[0], id)
		}
	}
}

func TestListShowsOpenRuns(t *testing.T) {
	t.Parallel()
	q := newQueue(t, stores.Redis(t).URL, queue.Config{})
	started := make(chan struct{}, 1)
	work(t, q, queue.ServerConfig{Concurrency: 1, Grace: time.Millisecond}, func(ctx context.Context, _ scoring.Run) (time.Time, error) {
		started <- struct{}{}
		<-ctx.Done()
		return time.Time{}, ctx.Err()
	})
	first := start(t, q, "first.com")[0]
	<-started
	start(t, q, "second.com", "third.com")
	f := func(state scoring.RunState, limit int, want int) {
		t.Helper()
		runs, err := q.List(t.Context(), state, limit)
		if err != nil || len(runs) != want {
			t.Errorf("List(%q, %d) = %d runs, %v; want %d", state, limit, len(runs), err, want)
		}
	}
	f("", 10, 3)
	f("", 2, 2)
	f(scoring.RunQueued, 10, 2)
	f(scoring.RunRunning, 10, 1)
	if _, err := q.List(t.Context(), scoring.RunFailed, 10); err == nil {
		t.Error("List of a final state gave no error")
	}
	runs, err := q.GetMany(t.Context(), "nothing", first.ID)
	if err != nil || len(runs) != 2 || runs[0].ID != "" || runs[1].ID != first.ID {
		t.Errorf("GetMany(unknown, known) = %+v, %v", runs, err)
	}
	if _, err := q.Get(t.Context(), "nothing"); !errors.Is(err, scoring.ErrNotFound) {
		t.Errorf("Get(unknown) = %v, want ErrNotFound", err)
	}
}

func TestAbortQueuedRun(t *testing.T) {
	t.Parallel()
	server := stores.Redis(t)
	client := connect(t, server.URL)
	q := newQueue(t, server.URL, queue.Config{})
	run := start(t, q, "acme.com")[0]
	if err := q.Abort(t.Context(), run.ID); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{redis.InFlight("acme.com"), redis.Lane("bulk"), redis.Turns("bulk")} {
		if client.Exists(t.Context(), key).Val() != 0 {
			t.Errorf("the aborted run is still in %s", key)
		}
	}
	err := q.Abort(t.Context(), run.ID)
	if !errors.Is(err, queue.ErrFinal) {
		t.Errorf("second Abort = %v, want ErrFinal", err)
	}
	if err := q.Abort(t.Context(), "nothing"); !errors.Is(err, scoring.ErrNotFound) {
		t.Errorf("Abort(unknown) = %v, want ErrNotFound", err)
	}
	next := start(t, q, "acme.com")[0]
	work(t, q, queue.ServerConfig{}, func(_ context.Context, r scoring.Run) (time.Time, error) {
		if r.ID == run.ID {
			t.Error("aborted run was worked on")
		}
		return r.StartedAt, nil
	})
	waitFor(t, q, next.ID, scoring.RunSucceeded)
}

func TestAbortRunningRunStopsHandler(t *testing.T) {
	t.Parallel()
	q := newQueue(t, stores.Redis(t).URL, queue.Config{})
	log := &runLog{}
	started, stopped := make(chan struct{}), make(chan struct{})
	work(t, q, beating(log), func(ctx context.Context, _ scoring.Run) (time.Time, error) {
		close(started)
		<-ctx.Done()
		close(stopped)
		return time.Time{}, ctx.Err()
	})
	run := start(t, q, "acme.com")[0]
	<-started
	if err := q.Abort(t.Context(), run.ID); err != nil {
		t.Fatal(err)
	}
	isNow(t, q, run.ID, scoring.RunAborted)
	select {
	case <-stopped:
	case <-time.After(wait.Max):
		t.Fatal("handler of the aborted run was not stopped")
	}
	wait.Until(t, "the abort is logged", func() bool {
		logged, ok := log.get(run.ID)
		return ok && logged.State == scoring.RunAborted
	})
}

// A heartbeat stores how far an attempt is. The run shows it while it is worked on.
func TestRunShowsItsProgress(t *testing.T) {
	t.Parallel()
	q := newQueue(t, stores.Redis(t).URL, queue.Config{})
	id := start(t, q, "acme.com")[0].ID
	finish := make(chan struct{})
	cfg := beating(nil)
	cfg.Progress = func(runID string) scoring.Progress {
		if runID != id {
			t.Errorf("progress of run %q is asked", runID)
		}
		return scoring.Progress{Done: 3, Total: 7}
	}
	work(t, q, cfg, func(context.Context, scoring.Run) (time.Time, error) {
		<-finish
		return time.Now(), nil
	})
	wait.Until(t, "the run shows its progress", func() bool {
		run, err := q.Get(t.Context(), id)
		return err == nil && run.Progress == scoring.Progress{Done: 3, Total: 7}
	})
	close(finish)
	if run := waitFor(t, q, id, scoring.RunSucceeded); run.Progress != (scoring.Progress{}) {
		t.Errorf("an ended run has progress %+v", run.Progress)
	}
}

func TestHandlerOutcomes(t *testing.T) {
	t.Parallel()
	server := stores.Redis(t)
	var mu sync.Mutex
	calls := make(map[string]int)
	handler := func(ctx context.Context, run scoring.Run) (time.Time, error) {
		mu.Lock()
		calls[run.Domain]++
		call := calls[run.Domain]
		mu.Unlock()
		switch run.Domain {
		case "error.com":
			return time.Time{}, errors.New("source broke")
		case "panic.com":
			panic("boom")
		case "second.com":
			if call == 1 {
				return time.Time{}, errors.New("first attempt")
			}
		case "slow.com":
			<-ctx.Done()
			return time.Time{}, ctx.Err()
		case "deaf.com":
			<-t.Context().Done()
		case "unregistered.com":
			return time.Time{}, fmt.Errorf("score it: %w", scoring.ErrUnregistered)
		case "nothing.com":
			return time.Time{}, nil
		}
		return run.StartedAt, nil
	}
	var q *queue.Queue
	within := func(deadline time.Duration) (stop func() error) {
		q = newQueue(t, server.URL, queue.Config{Deadline: deadline, Attempts: 2})
		return work(t, q, queue.ServerConfig{RetryDelay: time.Millisecond}, handler)
	}
	f := func(domain string, want scoring.RunState, attempts int, scored bool) {
		t.Helper()
		run := start(t, q, domain)[0]
		run = waitFor(t, q, run.ID, want)
		if run.Attempts != attempts || run.ScoredAt.IsZero() == scored {
			t.Errorf("%s: %d attempts, scored at %s; want %d attempts, scored %v", domain, run.Attempts, run.ScoredAt, attempts, scored)
		}
		if want != scoring.RunSucceeded && run.Error == "" {
			t.Errorf("%s: no explanation", domain)
		}
	}
	stop := within(wait.Max)
	f("good.com", scoring.RunSucceeded, 1, true)
	f("unregistered.com", scoring.RunFailed, 1, false) // it will not be registered a moment later
	f("nothing.com", scoring.RunSucceeded, 1, false)
	f("error.com", scoring.RunFailed, 2, false)
	f("panic.com", scoring.RunFailed, 2, false)
	f("second.com", scoring.RunSucceeded, 2, true)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	within(50 * time.Millisecond)
	f("slow.com", scoring.RunTimedOut, 1, false)
	f("deaf.com", scoring.RunTimedOut, 1, false)
}

func TestLongErrorIsCutBetweenCharacters(t *testing.T) {
	t.Parallel()
	q := newQueue(t, stores.Redis(t).URL, queue.Config{Attempts: 1})
	work(t, q, queue.ServerConfig{}, func(_ context.Context, run scoring.Run) (time.Time, error) {
		return time.Time{}, errors.New(strings.Repeat("x", int(run.Domain[0]-'a')) + strings.Repeat("€", 1000))
	})
	for _, domain := range []string{"a.com", "b.com", "c.com"} { // a euro sign has three bytes
		run := waitFor(t, q, start(t, q, domain)[0].ID, scoring.RunFailed)
		if !utf8.ValidString(run.Error) || !strings.HasSuffix(run.Error, "€ ...") {
			t.Errorf("%s failed with %q", domain, run.Error)
		}
	}
}

func TestReplayedAttemptKeepsStartedAt(t *testing.T) {
	t.Parallel()
	q := newQueue(t, stores.Redis(t).URL, queue.Config{})
	starts := make(chan time.Time, 2)
	work(t, q, queue.ServerConfig{RetryDelay: time.Millisecond}, func(_ context.Context, run scoring.Run) (time.Time, error) {
		starts <- run.StartedAt
		if run.Attempts == 1 {
			return time.Time{}, errors.New("again")
		}
		return run.StartedAt, nil
	})
	start(t, q, "acme.com")
	if first, second := <-starts, <-starts; !first.Equal(second) {
		t.Errorf("attempts have StartedAt %s and %s", first, second)
	}
}

func TestShutdownPutsRunBack(t *testing.T) {
	t.Parallel()
	server := stores.Redis(t)
	q := newQueue(t, server.URL, queue.Config{})
	started := make(chan struct{})
	stop := work(t, q, queue.ServerConfig{Grace: 10 * time.Millisecond}, func(ctx context.Context, _ scoring.Run) (time.Time, error) {
		close(started)
		<-ctx.Done()
		return time.Time{}, ctx.Err()
	})
	run := start(t, q, "acme.com")[0]
	<-started
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	put, err := q.Get(t.Context(), run.ID)
	if err != nil || put.State != scoring.RunQueued || put.Attempts != 0 {
		t.Errorf("run after shutdown = %+v, %v; want queued, no attempt counted", put, err)
	}
	work(t, newQueue(t, server.URL, queue.Config{}), queue.ServerConfig{}, succeed)
	if run = waitFor(t, q, run.ID, scoring.RunSucceeded); !run.StartedAt.Equal(put.StartedAt) {
		t.Errorf("StartedAt changed from %s to %s", put.StartedAt, run.StartedAt)
	}
}

func TestShutdownLetsRunsEnd(t *testing.T) {
	t.Parallel()
	q := newQueue(t, stores.Redis(t).URL, queue.Config{})
	started, finish := make(chan struct{}), make(chan struct{})
	log := &runLog{}
	stop := work(t, q, queue.ServerConfig{Log: log, Grace: time.Minute}, func(_ context.Context, run scoring.Run) (time.Time, error) {
		close(started)
		<-finish
		return run.StartedAt, nil
	})
	run := start(t, q, "acme.com")[0]
	<-started
	time.AfterFunc(50*time.Millisecond, func() { close(finish) })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	isNow(t, q, run.ID, scoring.RunSucceeded)
	if _, ok := log.get(run.ID); !ok {
		t.Error("the run that ended during shutdown is not in the log")
	}
}

func TestReopenKeepsLostID(t *testing.T) {
	t.Parallel()
	server := stores.Redis(t)
	client := connect(t, server.URL)
	q := newQueue(t, server.URL, queue.Config{})
	lost := start(t, q, "acme.com")[0]
	client.FlushAll(t.Context())
	id, err := q.Reopen(t.Context(), lost.ID, "acme.com", "account")
	if err != nil || id != lost.ID {
		t.Fatalf("Reopen = %s, %v; want run %s", id, err, lost.ID)
	}
	work(t, q, queue.ServerConfig{}, succeed)
	waitFor(t, q, lost.ID, scoring.RunSucceeded)
}

func TestFinishOfLostRunIsRewritten(t *testing.T) {
	t.Parallel()
	server := stores.Redis(t)
	client := connect(t, server.URL)
	q := newQueue(t, server.URL, queue.Config{TTL: time.Hour})
	started, finish := make(chan struct{}), make(chan struct{})
	work(t, q, queue.ServerConfig{}, func(_ context.Context, run scoring.Run) (time.Time, error) {
		close(started)
		<-finish
		return run.StartedAt, nil
	})
	run := start(t, q, "acme.com")[0]
	<-started
	client.FlushAll(t.Context())
	close(finish)
	ended := waitFor(t, q, run.ID, scoring.RunSucceeded)
	if ended.Domain != "acme.com" || ended.ScoredAt.IsZero() || !ended.CreatedAt.Equal(run.CreatedAt) {
		t.Errorf("run written anew = %+v", ended)
	}
	if ttl := client.TTL(t.Context(), redis.Run(run.ID)).Val(); ttl <= 0 {
		t.Errorf("run written anew lives for %s", ttl)
	}
}

func TestLogOutageLosesNoRun(t *testing.T) {
	t.Parallel()
	q := newQueue(t, stores.Redis(t).URL, queue.Config{})
	log := &runLog{down: errors.New("away")}
	work(t, q, queue.ServerConfig{Log: log}, succeed)
	run := start(t, q, "acme.com")[0]
	waitFor(t, q, run.ID, scoring.RunSucceeded)
	log.mu.Lock()
	log.down = nil
	log.mu.Unlock()
	wait.Until(t, "the run is logged", func() bool { _, ok := log.get(run.ID); return ok })
}

func TestBulk(t *testing.T) {
	t.Parallel()
	q := newQueue(t, stores.Redis(t).URL, queue.Config{})
	domains := make([]string, 2*880)
	for i := range domains {
		domains[i] = fmt.Sprintf("company%d.com", i)
	}
	runs := start(t, q, domains...)
	work(t, q, queue.ServerConfig{Concurrency: 1000, Group: 250}, succeed)
	wait.Until(t, "no run is open", func() bool { return open(t, q) == 0 })
	ids := make([]string, len(runs))
	for i, run := range runs {
		ids[i] = run.ID
	}
	ended, err := q.GetMany(t.Context(), ids...)
	if err != nil {
		t.Fatal(err)
	}
	for i, run := range ended {
		if run.State != scoring.RunSucceeded || run.Attempts != 1 || run.Domain != domains[i] {
			t.Fatalf("run %d = %+v", i, run)
		}
	}
}
