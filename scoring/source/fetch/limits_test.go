package fetch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"companyscore/internal/redis"
	"companyscore/internal/test/stores"
)

func newTestLimits(scale float64) *limits {
	return newLimits(nil, scale, slog.New(slog.DiscardHandler))
}

func codeOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// TestTurnsComeInOrder sends many requests to a provider with one turn in six seconds. The first
// ones get the turns, and those that cannot be served in time fail at once.
func TestTurnsComeInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, start := newTestLimits(1), time.Now()
		const crowd = 10
		served, skipped := make([]time.Duration, crowd), make([]time.Duration, crowd)
		var all sync.WaitGroup
		for i := range crowd {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				done, err := l.acquire(ctx, "gdelt", "", time.Second)
				if codeOf(err) == CodeRateLimited {
					skipped[i] = time.Since(start) + 1
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				served[i] = time.Since(start) + 1
				done()
			})
			synctest.Wait() // so that they come one after the other
		}
		all.Wait()
		for i := range crowd {
			switch {
			case i < 4 && served[i] != time.Duration(i)*6*time.Second+1:
				t.Errorf("number %d was served after %s", i, served[i]-1)
			case i >= 4 && skipped[i] != 1:
				t.Errorf("number %d was skipped after %s", i, skipped[i]-1)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if done, err := l.acquire(ctx, "gdelt", "", 0); err != nil {
			t.Errorf("those who were skipped took turns: %v", err)
		} else {
			done()
		}
	})
}

// Slow answers do not lower the rate of a quota, and whoever could not get an answer in time is
// skipped at once.
func TestSlowAnswersKeepTheRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, start, p := newTestLimits(1), time.Now(), PolicyOf("gdelt")
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), p.Deadline)
				defer cancel()
				done, err := l.acquire(ctx, "gdelt", "", p.need())
				took := time.Since(start)
				switch served := i <= 5; { // the turn of number 6 would leave 14 s
				case served && (err != nil || took != time.Duration(i)*6*time.Second):
					t.Errorf("number %d was served after %s, %v", i, took, err)
				case !served && (codeOf(err) != CodeRateLimited || took != 0):
					t.Errorf("number %d was skipped after %s, %v", i, took, err)
				}
				if err == nil {
					time.Sleep(23 * time.Second)
					done()
				}
			})
			synctest.Wait() // so that they come one after the other
		}
		all.Wait()
	})
}

// A request that waits for a slot gives up when an answer could no longer come in time.
func TestSlotsLeaveTimeToAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, start := newTestLimits(1), time.Now()
		for range 2 {
			done, err := l.acquire(t.Context(), "wikimedia", "", 0)
			if err != nil {
				t.Fatal(err)
			}
			defer done()
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := l.acquire(ctx, "wikimedia", "", 4*time.Second); codeOf(err) != CodeRateLimited || time.Since(start) != 6*time.Second {
			t.Errorf("gave up after %s: %v", time.Since(start), err)
		}
		if done, err := l.acquire(ctx, "hn", "", time.Hour); err != nil {
			t.Errorf("a request without a wait: %v", err)
		} else {
			done()
		}
	})
}

func TestPlacesAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newTestLimits(1)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		first, err := l.acquire(ctx, "wikimedia", "", 0)
		if err != nil {
			t.Fatal(err)
		}
		second, err := l.acquire(ctx, "wikimedia", "", 0)
		if err != nil {
			t.Fatal(err)
		}
		short, cancelShort := context.WithTimeout(t.Context(), time.Second)
		defer cancelShort()
		if _, err := l.acquire(short, "wikimedia", "", 0); codeOf(err) != CodeRateLimited {
			t.Errorf("a third request at once: %v", err)
		}
		first()
		third, err := l.acquire(ctx, "wikimedia", "", 0)
		if err != nil {
			t.Fatalf("a place was given back and not given out: %v", err)
		}
		second()
		third()
	})
}

func TestHostsHaveLimitsOfTheirOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, start := newTestLimits(1), time.Now()
		enter := func(host string) time.Duration {
			t.Helper()
			done, err := l.acquire(t.Context(), "web", host, 0)
			if err != nil {
				t.Fatal(err)
			}
			done()
			return time.Since(start)
		}
		if enter("a.com") != 0 || enter("b.com") != 0 {
			t.Error("one host waits for another")
		}
		if took := enter("a.com"); took != time.Second {
			t.Errorf("the second request to a host came after %s, want 1 s", took)
		}
		l.setPace("web", "a.com", 10*time.Second) // its robots.txt sets a crawl delay
		enter("a.com")                            // 2 s
		if took := enter("a.com"); took != 12*time.Second {
			t.Errorf("a host that asked for 10 s was asked again after %s in all", took)
		}
		l.pauseQuota(t.Context(), "web", "a.com", time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if _, err := l.acquire(ctx, "web", "a.com", 0); codeOf(err) != CodeRateLimited || ctx.Err() != nil {
			t.Errorf("a host that asked for a pause: %v", err)
		}
		if before := time.Since(start); enter("b.com") != before {
			t.Error("a pause of one host holds up another")
		}
	})
}

func TestBreaker(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	p := Policy{BreakFor: time.Minute}
	b := &breaker{failuresMax: failuresMax}
	for range failuresMax - 1 {
		b.record(CodeHTTP, p, now)
	}
	b.record("", p, now)
	for range failuresMax - 1 {
		b.record(CodeTimeout, p, now)
	}
	if err := b.allow("x", now); err != nil {
		t.Errorf("left alone after an answer in between: %v", err)
	}
	b.record(CodeTimeout, p, now)
	if err := b.allow("x", now); codeOf(err) != CodeTimeout {
		t.Errorf("after five failures in a row: %v", err)
	}
	later := now.Add(time.Minute)
	if err := b.allow("x", later); err != nil {
		t.Errorf("after a minute: %v", err)
	}
	if b.record(CodeHTTP, p, later); b.allow("x", later) == nil {
		t.Error("the request that tries again failed, and the next may go on")
	}
	strict := &breaker{failuresMax: failuresMax}
	strict.record(CodeRateLimited, Policy{BreakFor: 10 * time.Minute, BreakOnRefusal: true}, now)
	if err := strict.allow("x", now.Add(9*time.Minute)); codeOf(err) != CodeRateLimited {
		t.Errorf("a provider that punishes: %v", err)
	}
}

func openRedis(t *testing.T) goredis.UniversalClient {
	t.Helper()
	client, err := redis.Open(t.Context(), stores.Redis(t).URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// TestWorkersShareTurns has two workers reserve turns at one provider.
func TestWorkersShareTurns(t *testing.T) {
	t.Parallel()
	r := openRedis(t)
	one, other := newLimits(r, 1, slog.New(slog.DiscardHandler)), newLimits(r, 1, slog.New(slog.DiscardHandler))
	try := func(l *limits, patience time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		done, err := l.acquire(ctx, "crt.sh", "", 0)
		if err == nil {
			done()
		}
		return err
	}
	if err := try(one, 5*time.Second); err != nil {
		t.Fatal(err)
	}
	if err := try(other, 5*time.Second); codeOf(err) != CodeRateLimited {
		t.Errorf("the other worker got a turn in the same 10 s: %v", err)
	}
	// A pause applies to all workers.
	other.pauseQuota(t.Context(), "sec", "", time.Hour)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := one.acquire(ctx, "sec", "", 0); codeOf(err) != CodeRateLimited || ctx.Err() != nil {
		t.Errorf("a pause that one worker was asked for: %v", err)
	}
}

// TestSharedBurst checks the script against the numbers of a quota.
func TestSharedBurst(t *testing.T) {
	t.Parallel()
	l := newLimits(openRedis(t), 1, slog.New(slog.DiscardHandler))
	q := l.queue("gleif", "") // 30 a minute, 5 at once
	began := time.Now()
	for i := range 7 {
		wait, taken, err := l.reserveShared(t.Context(), q, time.Minute)
		if err != nil || !taken {
			t.Fatalf("turn %d: %v, %v", i, taken, err)
		}
		highest := time.Duration(max(0, i-4)) * 2 * time.Second
		lowest := highest - time.Since(began) - time.Millisecond
		if wait < lowest || wait > highest {
			t.Errorf("turn %d waits %s, want %s to %s", i, wait, lowest, highest)
		}
	}
	if wait, taken, err := l.reserveShared(t.Context(), q, time.Second); err != nil || taken || wait <= time.Second {
		t.Errorf("a turn beyond patience: %s, %v, %v", wait, taken, err)
	}
}

// The clock of Redis goes back by an hour, so that stored times are an hour ahead.
func TestSharedTurnsSurviveClockSteps(t *testing.T) {
	t.Parallel()
	r := openRedis(t)
	l := newLimits(r, 1, slog.New(slog.DiscardHandler))
	q := l.queue("gleif", "") // 30 a minute, 5 at once
	began := time.Now()
	for range 5 {
		if _, _, err := l.reserveShared(t.Context(), q, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	var used, written int64
	if _, err := fmt.Sscan(r.Get(t.Context(), redis.SourceQuota("gleif")).Val(), &used, &written); err != nil {
		t.Fatal(err)
	}
	step := time.Hour.Microseconds()
	if err := r.Set(t.Context(), redis.SourceQuota("gleif"), fmt.Sprint(used+step, " ", written+step), 2*time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	if wait, taken, err := l.reserveShared(t.Context(), q, time.Minute); err != nil || !taken || wait <= 0 &&
		time.Since(began) < 2*time.Second || wait > 2*time.Second {
		t.Errorf("the sixth turn waits %s (taken %v, %v), want up to 2 s as before the step", wait, taken, err)
	}
}

func TestLimitsHoldWithoutRedis(t *testing.T) {
	t.Parallel()
	r := openRedis(t)
	l := newLimits(r, 1, slog.New(slog.DiscardHandler))
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	done, err := l.acquire(ctx, "crt.sh", "", 0)
	if err != nil {
		t.Fatal(err)
	}
	done()
	if _, err := l.acquire(ctx, "crt.sh", "", 0); codeOf(err) != CodeRateLimited {
		t.Errorf("without Redis a second turn in the same 10 s: %v", err)
	}
}

func TestLRU(t *testing.T) {
	t.Parallel()
	l := newLRU[int, string](80)
	for i := range 20 {
		l.put(i, "x", 10)
		if _, ok := l.get(0); !ok {
			t.Fatalf("what is used most is gone after %d", i)
		}
	}
	if l.size != 80 || l.order.Len() != 8 || len(l.items) != 8 {
		t.Errorf("size %d, %d in order, %d items", l.size, l.order.Len(), len(l.items))
	}
	if _, ok := l.get(5); ok {
		t.Error("what was not used is still there")
	}
	l.put(19, "large", 11)
	if _, ok := l.get(19); ok {
		t.Error("a value that is too large was kept, or an old one in its place")
	}
	if got := l.getOr(19, func() string { return "made" }); got != "made" {
		t.Errorf("getOr = %q", got)
	}
}
