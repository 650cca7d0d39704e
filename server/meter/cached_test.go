package meter

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"companyscore/internal/account"
	"companyscore/internal/redis"
	"companyscore/internal/table"
	"companyscore/internal/test/wait"
)

func TestUsageHasWhatWasJustCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, DefaultLimits())
	if got := w.usage(t, starter, noon); got.TotalCalls != 0 || got.Period != "2026-05" ||
		!got.LastReset.Equal(time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)) ||
		!got.NextReset.Equal(time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)) ||
		got.AccountID != starter.ID || got.Plan != account.Starter || *got.Limits.CachedCallsIncluded != 10_000 ||
		*got.Limits.ColdCallsIncluded != 100 || got.Limits.FreshnessWindow != 24*time.Hour {
		t.Errorf("usage of a new account = %+v", got)
	}
	for i := range 5 {
		w.CountCached(starter, noon)
		if got := w.usage(t, starter, noon).CachedCalls; got != int64(i+1) {
			t.Errorf("cached calls after %d = %d", i+1, got)
		}
		if i == 2 {
			must(t, w.flush(t.Context()))
			must(t, w.flush(t.Context()))
		}
	}
	w.mustAdmit(t, AdmitRequest{})
	if got := w.usage(t, starter, noon); got.TotalCalls != 6 || got.ColdCalls != 1 || got.CachedCalls != 5 {
		t.Errorf("usage = %+v, want 5 cached and 1 cold", got)
	}
	if got := w.usage(t, starter, noon.AddDate(0, 1, 0)); got.TotalCalls != 0 || got.Period != "2026-06" {
		t.Errorf("usage of the next month = %+v, want none", got)
	}
}

func TestUsageIsNeverWrongWhileFlushing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, DefaultLimits())
	stop := make(chan struct{})
	var flusher sync.WaitGroup
	flusher.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				if err := w.flush(t.Context()); err != nil {
					t.Error(err)
				}
			}
		}
	})
	for i := range 1000 {
		w.CountCached(starter, noon)
		if got := w.usage(t, starter, noon).CachedCalls; got != int64(i+1) {
			t.Fatalf("cached calls after %d = %d", i+1, got)
		}
	}
	close(stop)
	flusher.Wait()
}

// flushing starts a flush and returns when it has taken the calls. ended is closed when it has ended.
func (w *world) flushing(t *testing.T) (ended chan struct{}) {
	t.Helper()
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		_ = w.flush(t.Context())
	}()
	for taken := false; !taken; {
		w.mu.RLock()
		taken = len(w.tallies) == 0
		w.mu.RUnlock()
	}
	return ended
}

func TestReadsKeepTheirTimeLimitBesideAFlush(t *testing.T) {
	t.Parallel()
	w := newWorld(t, DefaultLimits())
	w.CountCached(starter, noon)
	must(t, errors.Join(w.flush(t.Context()), w.flush(t.Context())))
	w.CountCached(starter, noon)
	thaw := w.server.Freeze(t)
	ended := w.flushing(t) // for callTimeout
	for name, read := range map[string]func(ctx context.Context) error{
		"usage": func(ctx context.Context) error { _, err := w.Usage(ctx, starter, noon); return err },
		"quota": func(ctx context.Context) error { _, err := w.LoadQuota(ctx, starter, noon); return err },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		if err := read(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v, want that its time is over", name, err)
		}
		cancel()
		select {
		case <-ended:
			t.Errorf("%s waited for the flush", name)
		default:
		}
	}
	thaw()
	<-ended
	must(t, w.flush(t.Context()))
	if got := w.usage(t, starter, noon).CachedCalls; got != 2 {
		t.Errorf("%d calls are counted, want 2", got)
	}
}

// slowLedger returns no usage before release is closed. It closes asked with the first read.
type slowLedger struct {
	Ledger
	asked   func()
	release chan struct{}
}

func (l slowLedger) Usage(ctx context.Context, accountID, period string) (table.MonthUsage, error) {
	l.asked()
	select {
	case <-l.release:
	case <-ctx.Done():
	}
	return l.Ledger.Usage(ctx, accountID, period)
}

func TestRestoringOneAccountDelaysNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t, DefaultLimits())
	w.CountCached(starter, noon)
	must(t, errors.Join(w.flush(t.Context()), w.flush(t.Context())))
	asked := make(chan struct{})
	slow := slowLedger{w.Meter.ledger, sync.OnceFunc(func() { close(asked) }), make(chan struct{})}
	w.Meter.ledger = slow
	other := account.Account{ID: "other", Plan: account.Growth}
	w.CountCached(other, noon)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = w.flush(t.Context())
	}()
	<-asked
	if got := w.usage(t, starter, noon).CachedCalls; got != 1 {
		t.Errorf("%d calls are counted, want 1", got)
	}
	select {
	case <-ended:
		t.Error("reads waited for the ledger")
	default:
	}
	close(slow.release)
	<-ended
	must(t, w.flush(t.Context()))
	if got := w.usage(t, other, noon).CachedCalls; got != 1 {
		t.Errorf("%d calls of the restored account are counted, want 1", got)
	}
}

func TestConcurrentCountsAllArrive(t *testing.T) {
	t.Parallel()
	w := newWorld(t, DefaultLimits())
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			acct := account.Account{ID: fmt.Sprint(i % 3), Plan: account.Growth}
			for n := range 5000 {
				w.CountCached(acct, noon)
				if n%500 == 0 {
					w.flush(t.Context())
				}
			}
		})
	}
	wg.Wait()
	must(t, errors.Join(w.flush(t.Context()), w.flush(t.Context())))
	total := 0
	for i := range 3 {
		n, err := w.client.HGet(t.Context(), redis.CachedMonth(fmt.Sprint(i), "2026-05"), "count").Int()
		must(t, err)
		total += n
	}
	if total != 40_000 {
		t.Errorf("%d calls arrived, want 40000", total)
	}
}

func TestCountsSurviveAnOutage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, DefaultLimits())
	w.CountCached(starter, noon)
	must(t, errors.Join(w.flush(t.Context()), w.flush(t.Context())))
	for range 5 {
		w.killRedis(t)
		for range 10 {
			w.CountCached(starter, noon)
			_ = w.flush(t.Context()) // may or may not arrive
		}
	}
	deadline := time.Now().Add(wait.Max)
	for errors.Join(w.flush(t.Context()), w.flush(t.Context())) != nil {
		if time.Now().After(deadline) {
			t.Fatal("Redis did not come back")
		}
	}
	if got := w.usage(t, starter, noon).CachedCalls; got != 51 {
		t.Errorf("cached calls after the outages = %d, want 51", got)
	}
}

// A batch whose answer was lost is sent again under its number.
func TestBatchThatArrivedTwiceCountsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, DefaultLimits())
	key := monthOf(starter.ID, noon)
	must(t, w.refill(t.Context(), key, account.Starter, noon))
	w.CountCached(starter, noon)
	w.pending, w.tallies, w.flushCount = w.tallies, make(map[month]*tally), 1
	send := func() {
		t.Helper()
		must(t, countScript.Run(t.Context(), w.client, []string{redis.CachedMonth(key.account, key.period())},
			w.pending[key].calls.Load(), w.Meter.server, w.flushCount, time.Hour.Milliseconds()).Err())
	}
	send()
	if got := w.usage(t, starter, noon).CachedCalls; got != 1 {
		t.Errorf("with a batch that arrived unnoticed, cached calls = %d, want 1", got)
	}
	must(t, w.flush(t.Context()))
	if got := w.usage(t, starter, noon).CachedCalls; got != 1 {
		t.Errorf("after the batch came again, cached calls = %d, want 1", got)
	}
}

func TestCountCachedDoesNotAllocate(t *testing.T) {
	w := newWorld(t, DefaultLimits())
	w.CountCached(starter, noon)
	if got := testing.AllocsPerRun(1000, func() { w.CountCached(starter, noon) }); got != 0 {
		t.Errorf("CountCached allocates %v times", got)
	}
}

func TestCloseWritesTheLastCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, DefaultLimits())
	m := New(w.client, w.ledger, DefaultLimits(), quiet)
	now := time.Now()
	for range 7 {
		m.CountCached(starter, now)
	}
	if _, err := m.Admit(t.Context(), AdmitRequest{Account: starter, KeyID: "key", Domain: "acme.com", Now: now}); err != nil {
		t.Fatal(err)
	}
	m.Close()
	if row := w.ledger.row(starter.ID, redis.Period(now)); row.CachedCalls != 7 || row.ColdCalls != 1 || row.Plan != "starter" {
		t.Errorf("ledger row after Close = %+v, want 7 cached and 1 cold of a starter", row)
	}
}

func BenchmarkCountCached(b *testing.B) {
	m := newMeter(nil, nil, DefaultLimits(), quiet)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			m.CountCached(starter, noon)
		}
	})
}
