package meter

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"companyscore/internal/account"
	"companyscore/internal/redis"
	"companyscore/internal/test/wait"
)

func TestUsageHasWhatWasJustCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, DefaultLimits())
	if got := w.usage(t, starter, noon); got.TotalCalls != 0 || got.Period != "2026-05" ||
		!got.LastReset.Equal(time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)) || !got.NextReset.Equal(time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)) ||
		got.AccountID != starter.ID || got.Tier != account.Starter || *got.Limits.CachedCallsIncluded != 10_000 ||
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

func TestConcurrentCountsAllArrive(t *testing.T) {
	t.Parallel()
	w := newWorld(t, DefaultLimits())
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			acct := account.Account{ID: fmt.Sprint(i % 3), Tier: account.Growth}
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
	if row := w.ledger.row(starter.ID, redis.Period(now)); row.CachedCalls != 7 || row.ColdCalls != 1 || row.Tier != "starter" {
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
