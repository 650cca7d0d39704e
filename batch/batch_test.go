package batch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"companyscore/internal/redis"
	"companyscore/internal/testenv"
	"companyscore/universe"
)

func TestMain(m *testing.M) { testenv.Main(m) }

type store struct {
	compact func(ctx context.Context) error
}

func (s store) Compact(ctx context.Context) error { return s.compact(ctx) }

func (store) Groups(context.Context) (universe.Snapshot, error) {
	return universe.Count(nil, time.Now()), nil
}

func (store) Movers(_ context.Context, window universe.Window, end time.Time) (universe.Movers, error) {
	return universe.Movers{Start: end.Add(-window.Length()), End: end}, nil
}

func runner(t *testing.T, url string, compact func(ctx context.Context) error) *Runner {
	t.Helper()
	client, err := redis.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	r, err := New(Config{Store: store{compact}, Redis: client, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func silent(string, fmt.Stringer) {}

func TestOneOfTwoProcessesRunsAJob(t *testing.T) {
	t.Parallel()
	url := testenv.Redis(t).URL
	other := runner(t, url, func(context.Context) error { t.Error("both run the job"); return nil })
	ran := 0
	r := runner(t, url, func(ctx context.Context) error {
		ran++
		if err := other.Once(ctx, silent); !errors.Is(err, errTaken) {
			t.Errorf("Once beside a running job = %v, want errTaken", err)
		}
		return nil
	})
	for range 2 {
		if err := r.Once(t.Context(), silent); err != nil {
			t.Fatal(err)
		}
	}
	if ran != 2 {
		t.Errorf("the job ran %d times, want 2: its lock is given back", ran)
	}
}

func TestFailedJobIsReportedAndGivesItsLockBack(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	r := runner(t, testenv.Redis(t).URL, func(context.Context) error { return boom })
	for range 2 {
		if err := r.Once(t.Context(), silent); !errors.Is(err, boom) || !strings.Contains(err.Error(), "compact") {
			t.Errorf("Once = %v, want the job named and its error", err)
		}
	}
}

func TestStopEndsTheJobUnderWay(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	r := runner(t, testenv.Redis(t).URL, func(ctx context.Context) error {
		close(begun)
		<-ctx.Done()
		return ctx.Err()
	})
	r.Start()
	done := make(chan struct{})
	go func() { defer close(done); r.scheduled(r.jobs[1]) }()
	<-begun
	r.Stop()
	<-done
}

func TestNewNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	_, err := New(Config{})
	for _, field := range []string{"Store", "Redis", "Logger"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("New of nothing = %v, want %s named", err, field)
		}
	}
}
