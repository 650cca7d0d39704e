package batch

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"companyscore/batch/jobs"
	"companyscore/internal/queue"
	"companyscore/internal/redis"
	"companyscore/internal/table"
	"companyscore/internal/test/stores"
	"companyscore/internal/test/wait"
	"companyscore/scoring"
	"companyscore/universe"
)

func TestMain(m *testing.M) { stores.Main(m) }

// store is a fake that returns counts of a number of companies.
type store struct {
	mu        sync.Mutex
	companies int64
	compact   func(ctx context.Context) error
	broken    error // returned by every count
	runs      []table.BatchRun
}

func (s *store) Compact(ctx context.Context) error { return s.compact(ctx) }

func (s *store) Count(_ context.Context, at time.Time, _ float64) (universe.Counts, error) {
	rec := scoring.Record{Sector: "software", GeoScope: "global", Profile: scoring.ProfileGrowth, Composite: 50}
	return universe.Count(slices.Repeat([]scoring.Record{rec}, int(s.companies)), at), s.broken
}

func (s *store) Movers(_ context.Context, at time.Time, _ float64) (universe.Movers, error) {
	m := universe.Movers{PipelineVersion: scoring.PipelineVersion, Lists: make(map[universe.Window]universe.MoverList)}
	for _, w := range universe.Windows {
		m.Lists[w] = universe.MoverList{Start: at.Add(-w.Length()), End: at}
	}
	return m, s.broken
}

func (s *store) Load(context.Context) (table.EngineLoad, error) { return table.EngineLoad{}, nil }

func (s *store) RefreshCoverage(context.Context, time.Time, table.RefreshTargets) (table.RefreshCoverage, error) {
	return table.RefreshCoverage{}, s.broken
}

func (s *store) RefreshDue(context.Context, time.Time, table.RefreshTargets, int) ([]string, error) {
	return nil, s.broken
}

func (s *store) Spreads(context.Context, uint64) (scoring.Spreads, error) {
	return scoring.Spreads{}, s.broken
}

func (s *store) NoteRefreshed(context.Context, []string, time.Time) error { return s.broken }

func (s *store) WriteRuns(_ context.Context, runs []table.BatchRun) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs = append(s.runs, runs...)
	return nil
}

// never are schedules that start no job.
var never = Schedules{Count: "off", Movers: "off", Refresh: "off", Housekeeping: "off", Spreads: "off", Inbox: "off",
	CountEpoch:  10 * time.Minute,
	MoversEpoch: 5 * time.Minute}

func runnerOf(t *testing.T, url string, s *store) *Runner {
	t.Helper()
	client, err := redis.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	q, err := queue.New(client, queue.Config{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := New(Config{
		Store: s, Redis: client, Logger: slog.New(slog.DiscardHandler), Schedules: never,
		Refresh: Refresh{RefreshTargets: table.RefreshTargets{Ages: table.RefreshAges{Asked: time.Hour, Others: time.Hour}}, Queue: q},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func runner(t *testing.T, url string, compact func(ctx context.Context) error) *Runner {
	t.Helper()
	return runnerOf(t, url, &store{compact: compact})
}

func silent(string) {}

const housekeeping = 4 // of the jobs of a runner

func TestOnlyOneProcessRunsJob(t *testing.T) {
	t.Parallel()
	url := stores.Redis(t).URL
	other := runner(t, url, func(context.Context) error { t.Error("both run the job"); return nil })
	ran := 0
	r := runner(t, url, func(ctx context.Context) error {
		ran++
		if _, err := other.run(ctx, other.jobs[housekeeping]); !errors.Is(err, errTaken) {
			t.Errorf("run beside a running job = %v, want errTaken", err)
		}
		return nil
	})
	for range 2 {
		if err := r.Once(t.Context(), jobs.Names(), silent); err != nil {
			t.Fatal(err)
		}
	}
	if ran != 2 {
		t.Errorf("the job ran %d times, want 2: its lock is given back", ran)
	}
}

func TestOnceWaitsForOtherProcess(t *testing.T) {
	t.Parallel()
	url := stores.Redis(t).URL
	ran, refused, waited := 0, make(refusals, 1), make(chan error, 1)
	other := runner(t, url, func(context.Context) error { ran++; return nil })
	other.cfg.Redis.AddHook(refused)
	r := runner(t, url, func(context.Context) error {
		go func() { waited <- other.Once(t.Context(), []string{jobs.Housekeeping}, silent) }()
		select {
		case <-refused:
			return nil
		case err := <-waited:
			t.Errorf("Once = %v while another process runs the job", err)
			waited <- err
			return nil
		}
	})
	if _, err := r.run(t.Context(), r.jobs[housekeeping]); err != nil {
		t.Fatal(err)
	}
	if err := <-waited; err != nil || ran != 1 {
		t.Errorf("Once = %v, and the job ran %d times, want 1", err, ran)
	}
}

// refusals gets a value when a lock was not taken, if there is room.
type refusals chan struct{}

func (refusals) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (refusals) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return next
}

func (r refusals) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		err := next(ctx, cmd)
		if script, ok := cmd.(*goredis.Cmd); ok && script.Val() == int64(0) {
			select {
			case r <- struct{}{}:
			default:
			}
		}
		return err
	}
}

func TestLockLastsWhileJobRuns(t *testing.T) {
	t.Parallel()
	r := runner(t, stores.Redis(t).URL, nil)
	r.lease = 6 * time.Second
	ends := func(ctx context.Context) int64 {
		at, err := r.cfg.Redis.HGet(ctx, redis.BatchLock("housekeeping"), "ends").Int64()
		if err != nil {
			t.Errorf("the lock is not held: %v", err)
		}
		return at
	}
	r.cfg.Store.(*store).compact = func(ctx context.Context) error {
		for first := ends(ctx); ctx.Err() == nil; { // until it is renewed
			if ends(ctx) > first {
				return nil
			}
		}
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeout(t.Context(), wait.Max)
	defer cancel()
	if _, err := r.run(ctx, r.jobs[housekeeping]); err != nil {
		t.Error(err)
	}
}

func TestJobEndsWhenLockIsLost(t *testing.T) {
	t.Parallel()
	r := runner(t, stores.Redis(t).URL, nil)
	r.lease = 300 * time.Millisecond
	var other *redis.Lock
	r.cfg.Store.(*store).compact = func(ctx context.Context) error {
		err := r.cfg.Redis.HDel(ctx, redis.BatchLock("housekeeping"), "ends").Err() // as if this process had paused
		if err != nil {
			return err
		}
		if other, err = redis.TakeLock(ctx, r.cfg.Redis, redis.BatchLock("housekeeping"), time.Hour); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeout(t.Context(), wait.Max)
	defer cancel()
	if _, err := r.run(ctx, r.jobs[housekeeping]); !errors.Is(err, redis.ErrLockLost) {
		t.Errorf("got %v, want %v", err, redis.ErrLockLost)
	}
	if err := other.Renew(ctx); err != nil {
		t.Errorf("the other process lost its lock: %v", err)
	}
}

func TestFailedJobReportsAndReleasesLock(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	r := runner(t, stores.Redis(t).URL, func(context.Context) error { return boom })
	for range 2 {
		if err := r.Once(t.Context(), jobs.Names(), silent); !errors.Is(err, boom) || !strings.Contains(err.Error(), "housekeeping") {
			t.Errorf("Once = %v, want the job named and its error", err)
		}
	}
}

func TestStopEndsTheJobUnderWay(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	r := runner(t, stores.Redis(t).URL, func(ctx context.Context) error {
		close(begun)
		<-ctx.Done()
		return ctx.Err()
	})
	r.Start()
	done := make(chan struct{})
	go func() { defer close(done); r.attempt(r.jobs[housekeeping]) }()
	<-begun
	r.Stop()
	<-done
}

func TestNewNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	_, err := New(Config{Schedules: Schedules{Count: "sometimes", Movers: "@every 1m", Refresh: "often", Housekeeping: "61 2 * * *",
		Spreads: "@every 1h", CountEpoch: 9 * time.Second, MoversEpoch: time.Minute},
		Refresh: Refresh{Pace: -1, RefreshTargets: table.RefreshTargets{Ages: table.RefreshAges{Asked: time.Minute - 1}}}})
	for _, field := range []string{"Store", "Redis", "Logger", "schedule-count", "schedule-refresh", "schedule-housekeeping",
		"epoch-count 9s", "Refresh.Queue", "Refresh.Pace", "refresh-asked 59.9", "refresh-others 0s"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("New of nothing = %v, want %s named", err, field)
		}
	}
	if err != nil && strings.Contains(err.Error(), "movers") {
		t.Errorf("New of nothing = %v, though schedules of movers are right", err)
	}
}
