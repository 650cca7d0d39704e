package job_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"companyscore/internal/account"
	"companyscore/internal/queue"
	"companyscore/internal/redis"
	"companyscore/internal/table"
	"companyscore/internal/test/stores"
	"companyscore/internal/test/wait"
	"companyscore/scoring"
	"companyscore/server/job"
	"companyscore/server/meter"
)

// emptyLedger has never heard of anybody.
type emptyLedger struct{}

func (emptyLedger) WriteUsage(context.Context, []table.MonthUsage) error   { return nil }
func (emptyLedger) WriteColdCalls(context.Context, []table.ColdCall) error { return nil }
func (emptyLedger) Usage(context.Context, string, string) (table.MonthUsage, error) {
	return table.MonthUsage{}, nil
}
func (emptyLedger) ColdCallsSince(context.Context, string, time.Time) ([]table.ColdCall, error) {
	return nil, nil
}
func (emptyLedger) WriteRuns(context.Context, []scoring.Run) error { return nil }

// history has records made at the given times.
type history map[string]time.Time

func (h history) FreshSince(_ context.Context, domains []string, since time.Time) (map[string]time.Time, error) {
	found := make(map[string]time.Time)
	for _, domain := range domains {
		if at, ok := h[domain]; ok && !at.Before(since) {
			found[domain] = at
		}
	}
	return found, nil
}

type world struct {
	client goredis.UniversalClient
	queue  *queue.Queue
	meter  *meter.Meter
	jobs   *job.Jobs
}

// newWorld has admitted jobs worked on by a real queue.
func newWorld(t *testing.T, options ...job.Option) *world {
	t.Helper()
	return newWorldWithin(t, wait.Max, options...)
}

// newWorldWithin is newWorld with a deadline of runs.
func newWorldWithin(t *testing.T, deadline time.Duration, options ...job.Option) *world {
	t.Helper()
	client, err := redis.Open(t.Context(), stores.Redis(t).URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	quiet := slog.New(slog.DiscardHandler)
	q, err := queue.New(client, queue.Config{Deadline: deadline, Attempts: 1, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	limits := meter.DefaultLimits()
	limits.Breakers.ColdPerKey.Limit = 1000 // all jobs are of one key
	m := meter.New(client, emptyLedger{}, limits, quiet)
	t.Cleanup(m.Close)
	return &world{client, q, m, job.New(client, q, options...)}
}

func (w *world) admit(t *testing.T, domain string) job.Job {
	t.Helper()
	a, err := w.meter.Admit(t.Context(), meter.AdmitRequest{
		Account: account.Account{ID: "account", Plan: account.Scale}, KeyID: "key", Domain: domain, Now: time.Now(),
	})
	if err != nil {
		t.Fatal(err)
	}
	j := w.get(t, a.JobID)
	if j.AccountID != "account" || j.KeyID != "key" || j.Domain != domain || j.RunID != a.RunID ||
		j.Status != job.Pending || !j.CreatedAt.Equal(a.CreatedAt) || !j.CompletedAt.IsZero() || !j.ScoredAt.IsZero() ||
		j.FailureReason != "" {
		t.Fatalf("admitted job = %+v of admission %+v", j, a)
	}
	return j
}

func (w *world) get(t *testing.T, id string) job.Job {
	t.Helper()
	jobs, err := w.jobs.Get(t.Context(), id)
	j, found := jobs[id]
	if err != nil || !found {
		t.Fatalf("job %s: found %v, %v", id, found, err)
	}
	return j
}

func (w *world) settle(t *testing.T, j job.Job) job.Job {
	t.Helper()
	jobs, err := w.jobs.Settle(t.Context(), map[string]job.Job{j.ID: j})
	j, found := jobs[j.ID]
	if err != nil || !found {
		t.Fatalf("settled job: found %v, %v", found, err)
	}
	return j
}

// work starts a worker that does one run at a time.
func (w *world) work(t *testing.T, do func(context.Context, scoring.Run) (time.Time, error)) {
	t.Helper()
	handler := func(ctx context.Context, runs []scoring.Run, _ func(int) bool) []scoring.Outcome {
		scoredAt, err := do(ctx, runs[0])
		return []scoring.Outcome{{ScoredAt: scoredAt, Err: err}}
	}
	server, err := queue.NewServer(w.queue, queue.ServerConfig{Log: emptyLedger{}, Grace: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx, handler) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// ended waits for the run of a job.
func (w *world) ended(t *testing.T, j job.Job) scoring.Run {
	t.Helper()
	var run scoring.Run
	wait.Until(t, "run "+j.RunID+" ends", func() bool {
		var err error
		run, err = w.queue.Get(t.Context(), j.RunID)
		return err == nil && run.State.Final()
	})
	return run
}

func TestJobSettlesAsItsRunEnded(t *testing.T) {
	t.Parallel()
	w, hurried := newWorld(t), newWorldWithin(t, 50*time.Millisecond)
	aborted := w.admit(t, "aborted.com")
	if err := w.queue.Abort(t.Context(), aborted.RunID); err != nil {
		t.Fatal(err)
	}
	handler := func(ctx context.Context, run scoring.Run) (time.Time, error) {
		switch run.Domain {
		case "failed.com":
			return time.Time{}, errors.New("broken")
		case "slow.com":
			<-ctx.Done()
			return time.Time{}, ctx.Err()
		case "empty.com":
			return time.Time{}, nil
		}
		return run.StartedAt, nil
	}
	w.work(t, handler)
	hurried.work(t, handler)
	f := func(w *world, j job.Job, status job.Status, reason job.FailureReason) {
		t.Helper()
		run := w.ended(t, j)
		if stored := w.get(t, j.ID); stored != j {
			t.Errorf("%s: a job nobody polled became %+v", j.Domain, stored)
		}
		got := w.settle(t, j)
		if got.Status != status || got.FailureReason != reason || !got.CompletedAt.Equal(run.FinishedAt) ||
			!got.ScoredAt.Equal(run.ScoredAt) {
			t.Errorf("%s: settled job = %+v of run %+v; want %s %s", j.Domain, got, run, status, reason)
		}
		if again := w.settle(t, w.get(t, j.ID)); again != got {
			t.Errorf("%s: second poll = %+v, first = %+v", j.Domain, again, got)
		}
	}
	f(w, aborted, job.Failed, job.RunAborted)
	f(w, w.admit(t, "good.com"), job.Complete, "")
	f(w, w.admit(t, "failed.com"), job.Failed, job.RunFailed)
	f(hurried, hurried.admit(t, "slow.com"), job.Failed, job.RunTimedOut)
	f(w, w.admit(t, "empty.com"), job.Failed, job.RunNoRecord)
}

func TestPendingJobStaysPending(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := w.admit(t, "acme.com")
	if got := w.settle(t, j); got != j {
		t.Errorf("polled job of a queued run = %+v, want %+v", got, j)
	}
}

func TestSettlingDoesNotExtendLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := w.admit(t, "acme.com")
	if err := w.client.Expire(t.Context(), redis.Job(j.ID), time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	w.work(t, func(_ context.Context, run scoring.Run) (time.Time, error) { return run.StartedAt, nil })
	w.ended(t, j)
	if got := w.settle(t, j); got.Status != job.Complete {
		t.Errorf("settled job = %+v", got)
	}
	if ttl := w.client.TTL(t.Context(), redis.Job(j.ID)).Val(); ttl <= 0 || ttl > time.Minute {
		t.Errorf("settled job lives for %s, want a minute at most", ttl)
	}
}

func TestConcurrentPollsAgree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := w.admit(t, "acme.com")
	w.work(t, func(_ context.Context, run scoring.Run) (time.Time, error) { return run.StartedAt, nil })
	w.ended(t, j)
	polls := make([]job.Job, 20)
	var wg sync.WaitGroup
	for i := range polls {
		wg.Go(func() { polls[i] = w.settle(t, j) })
	}
	wg.Wait()
	for _, poll := range polls {
		if poll != polls[0] || poll.Status != job.Complete {
			t.Errorf("polls = %+v and %+v", polls[0], poll)
		}
	}
}

func TestExpiredJobsAreNotFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if jobs, err := w.jobs.Get(t.Context(), "nothing"); err != nil || len(jobs) != 0 {
		t.Errorf("Get(unknown) = %v, %v; want none", jobs, err)
	}
	j := w.admit(t, "acme.com")
	if err := w.queue.Abort(t.Context(), j.RunID); err != nil {
		t.Fatal(err)
	}
	if err := w.client.Del(t.Context(), redis.Job(j.ID)).Err(); err != nil { // expires between Get and Settle
		t.Fatal(err)
	}
	if jobs, err := w.jobs.Settle(t.Context(), map[string]job.Job{j.ID: j}); err != nil || len(jobs) != 0 {
		t.Errorf("Settle of an expired job = %v, %v; want none", jobs, err)
	}
	if n := w.client.Exists(t.Context(), redis.Job(j.ID)).Val(); n != 0 {
		t.Error("settling brought an expired job back")
	}
}

// Many jobs are settled by few calls, each as alone: more than one script settles, ended and open, lost with
// and without a record.
func TestManyJobsAreSettledTogether(t *testing.T) {
	t.Parallel()
	records := history{}
	w := newWorld(t, job.WithRecords(records))
	const n = 600
	want := make(map[string]job.Status, n)
	var ids []string
	for i := range n {
		j := w.admit(t, fmt.Sprintf("company-%d.com", i))
		ids, want[j.ID] = append(ids, j.ID), job.Pending
		switch {
		case i%100 == 7: // lost
			if err := w.client.Del(t.Context(), redis.Run(j.RunID), redis.InFlight(j.Domain)).Err(); err != nil {
				t.Fatal(err)
			}
			if i%200 == 7 {
				records[j.Domain], want[j.ID] = j.CreatedAt.Add(time.Second), job.Complete
			}
		case i%10 != 3:
			if err := w.queue.Abort(t.Context(), j.RunID); err != nil {
				t.Fatal(err)
			}
			want[j.ID] = job.Failed
		}
	}
	jobs, err := w.jobs.Get(t.Context(), append(ids, "nothing")...)
	if err != nil || len(jobs) != n {
		t.Fatalf("%d jobs, %v", len(jobs), err)
	}
	settled, err := w.jobs.Settle(t.Context(), jobs)
	if err != nil || len(settled) != n {
		t.Fatalf("%d settled jobs, %v", len(settled), err)
	}
	for id, j := range settled {
		if j.ID != id || j.Status != want[id] || j.Domain != jobs[id].Domain {
			t.Errorf("settled job %+v, want %s", j, want[id])
		}
		if again := w.get(t, id); again != j {
			t.Errorf("stored job %+v, settled %+v", again, j)
		}
	}
}

func TestJobWithLostRun(t *testing.T) {
	t.Parallel()
	records := history{}
	w := newWorld(t, job.WithRecords(records))
	lose := func(j job.Job) {
		t.Helper()
		if err := w.client.Del(t.Context(), redis.Run(j.RunID)).Err(); err != nil {
			t.Fatal(err)
		}
	}

	made := w.admit(t, "made.com")
	lose(made)
	records["made.com"] = made.CreatedAt.Add(time.Second)
	if got := w.settle(t, made); got.Status != job.Complete || !got.ScoredAt.Equal(records["made.com"]) {
		t.Errorf("job whose lost run made a record = %+v", got)
	}

	stale := w.admit(t, "stale.com")
	lose(stale)
	records["stale.com"] = stale.CreatedAt.Add(-time.Second)
	if got := w.settle(t, stale); got.Status != job.Pending || got.RunID != stale.RunID {
		t.Errorf("job whose lost run made no record = %+v, want it pending on run %s", got, stale.RunID)
	}

	moved := w.admit(t, "moved.com")
	if err := w.client.Del(t.Context(), redis.Run(moved.RunID), redis.InFlight("moved.com")).Err(); err != nil {
		t.Fatal(err)
	}
	other := w.admit(t, "moved.com")
	w.settle(t, moved)
	if got := w.get(t, moved.ID); got.Status != job.Pending || got.RunID != other.RunID {
		t.Errorf("job whose domain has another run = %+v, want it pending on run %s", got, other.RunID)
	}

	w.work(t, func(_ context.Context, run scoring.Run) (time.Time, error) { return run.StartedAt, nil })
	for _, j := range []job.Job{stale, moved} {
		j = w.get(t, j.ID)
		w.ended(t, j)
		if got := w.settle(t, j); got.Status != job.Complete {
			t.Errorf("job after its run was made again = %+v", got)
		}
	}
}
