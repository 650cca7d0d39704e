package flush_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"companyscore/internal/flush"
	"companyscore/internal/retry"
)

var errDown = errors.New("store is down")

// store is a store in memory. It is down while err is set, and answers after delay.
type store struct {
	delay time.Duration
	start time.Time

	mu     sync.Mutex
	err    error
	writes [][]int         // pages that were stored
	tries  []time.Duration // times of all writes since the start
}

func newStore() *store { return &store{start: time.Now()} }

func (s *store) write(ctx context.Context, rows []int) error {
	s.mu.Lock()
	s.tries = append(s.tries, time.Since(s.start))
	s.mu.Unlock()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(s.delay):
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	s.writes = append(s.writes, slices.Clone(rows))
	return nil
}

func (s *store) writeNothing(ctx context.Context) error { return s.write(ctx, nil) }

func (s *store) setError(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *store) wants(t *testing.T, pages ...[]int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.EqualFunc(s.writes, pages, slices.Equal) {
		t.Errorf("stored %v, want %v", s.writes, pages)
	}
}

// pass lets time pass and waits until the goroutines of the test have done what is due.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// lines are what a logger has logged, without times.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

// next returns what was logged since its last call.
func (l *lines) next() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.text.Reset()
	return l.text.String()
}

// add adds the rows from first to last and returns the number of dropped ones.
func add(b *flush.Buffer[int], first, last int) (dropped int) {
	for i := first; i <= last; i++ {
		if !b.Add(i) {
			dropped++
		}
	}
	return dropped
}

func TestRowsAreWrittenInPagesAtTheInterval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		b := &flush.Buffer[int]{Max: 10, PageMax: 3, Write: s.write}
		logged := new(lines)
		l := flush.Start(flush.Config{Interval: time.Second, Logger: logged.logger()}, b.Flush)
		add(b, 1, 7)
		pass(time.Second - 1)
		s.wants(t)
		pass(1)
		s.wants(t, []int{1, 2, 3}, []int{4, 5, 6}, []int{7})
		pass(time.Minute) // no write without rows
		if add(b, 8, 9); b.Len() != 2 {
			t.Errorf("%d rows in memory, want 2", b.Len())
		}
		if err := l.Close(t.Context()); err != nil || b.Len() != 0 {
			t.Errorf("Close = %v, and %d rows are left", err, b.Len())
		}
		s.wants(t, []int{1, 2, 3}, []int{4, 5, 6}, []int{7}, []int{8, 9})
		if text := logged.next(); text != "" {
			t.Errorf("logged %s", text)
		}
	})
}

func TestRowsOutlastAnOutageUpToTheBound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		dropOldest bool
		want       [][]int
	}{
		"the new rows are dropped": {false, [][]int{{1, 2, 3}, {4}}},
		"the oldest are dropped":   {true, [][]int{{3, 4, 5}, {6}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStore()
				s.err = errDown
				b := &flush.Buffer[int]{Max: 4, DropOldest: c.dropOldest, PageMax: 3, Write: s.write}
				logged := new(lines)
				l := flush.Start(flush.Config{Interval: time.Second, Trouble: "numbers not written yet", Logger: logged.logger()}, b.Flush)
				defer l.Stop()
				dropped := add(b, 1, 2)
				pass(10*time.Second + 1)
				if dropped += add(b, 3, 6); dropped != 2 || b.Len() != 4 {
					t.Errorf("%d rows are dropped and %d left, want 2 and 4", dropped, b.Len())
				}
				pass(time.Second)
				s.wants(t)
				if got, want := logged.next(), "level=WARN msg=\"numbers not written yet\" err=\"store is down\"\n"; got != want {
					t.Errorf("logged %q, want %q", got, want)
				}
				s.setError(nil)
				pass(10 * time.Second)
				s.wants(t, c.want...)
				if got, want := logged.next(), "level=INFO msg=\"over: numbers not written yet\" lasted=11s\n"; got != want {
					t.Errorf("logged %q, want %q", got, want)
				}
				if len(s.tries) != 11+len(c.want) {
					t.Errorf("%d writes, want 11 that failed and one of each page", len(s.tries))
				}
			})
		})
	}
}

// TestRowsThatComeDuringAWriteWait has a page in flight while rows come and push its oldest ones out.
func TestRowsThatComeDuringAWriteWait(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{"the write succeeds": nil, "the write fails": errDown} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStore()
				s.delay, s.err = time.Second, err
				b := &flush.Buffer[int]{Max: 4, DropOldest: true, PageMax: 10, Write: s.write}
				add(b, 1, 4)
				go func() {
					if got := b.Flush(t.Context()); !errors.Is(got, err) {
						t.Errorf("Flush = %v, want %v", got, err)
					}
				}()
				synctest.Wait()
				add(b, 5, 6) // 1 and 2 leave the buffer
				pass(2 * time.Second)
				if want := map[error]int{nil: 2, errDown: 4}[err]; b.Len() != want {
					t.Errorf("%d rows are left, want %d", b.Len(), want)
				}
				s.setError(nil)
				if err := b.Flush(t.Context()); err != nil {
					t.Error(err)
				}
				if err == nil {
					s.wants(t, []int{1, 2, 3, 4}, []int{5, 6})
				} else {
					s.wants(t, []int{3, 4, 5, 6})
				}
			})
		})
	}
}

func TestDrainEmptiesTheBuffer(t *testing.T) {
	t.Parallel()
	s := newStore()
	b := &flush.Buffer[int]{Max: 4, PageMax: 4, Write: s.write}
	add(b, 1, 3)
	if rows := b.Drain(); !slices.Equal(rows, []int{1, 2, 3}) {
		t.Errorf("Drain = %v", rows)
	}
	add(b, 4, 4)
	if err := b.Flush(t.Context()); err != nil || len(b.Drain()) != 0 {
		t.Errorf("Flush = %v, want an empty buffer", err)
	}
	s.wants(t, []int{4})
}

func TestIntervalGrowsDuringAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.err = errDown
		const interval, longest = time.Second, 10 * time.Second
		l := flush.Start(flush.Config{Interval: interval, Longest: longest, Logger: new(lines).logger()}, s.writeNothing)
		pass(time.Minute)
		l.Stop()
		for i, want := range []time.Duration{interval, 2 * interval, 4 * interval, 8 * interval, longest, longest} {
			got := s.tries[i]
			if i > 0 {
				got -= s.tries[i-1]
			}
			if least, most := float64(want)*(1-retry.Jitter), float64(want)*(1+retry.Jitter)+1; float64(got) < least ||
				float64(got) > most {
				t.Errorf("pause %d is %s, want about %s", i, got, want)
			}
		}
	})
}

func TestFailuresNowAndThenAreLoggedWithPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		logged := new(lines)
		writes := 0
		cfg := flush.Config{Interval: 100 * time.Millisecond, Trouble: "trouble", Logger: logged.logger()}
		l := flush.Start(cfg, func(context.Context) error {
			if writes++; writes%2 == 0 {
				return errDown
			}
			return nil
		})
		pass(15 * time.Second)
		l.Stop()
		if n := strings.Count(logged.next(), "WARN"); n != 3 {
			t.Errorf("%d warnings in 15 s, want 3", n)
		}
	})
}

func TestWritesHaveATimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.delay = time.Hour
		logged := new(lines)
		l := flush.Start(flush.Config{Interval: time.Second, Timeout: 3 * time.Second, Logger: logged.logger()}, s.writeNothing)
		defer l.Stop()
		pass(10 * time.Second)
		if want := []time.Duration{time.Second, 5 * time.Second, 9 * time.Second}; !slices.Equal(s.tries, want) {
			t.Errorf("writes at %s, want %s", s.tries, want)
		}
		if text := logged.next(); !strings.Contains(text, context.DeadlineExceeded.Error()) {
			t.Errorf("logged %s", text)
		}
	})
}

// TestCloseRepeatsTheWriteInFlight closes a loop while the store is slow.
func TestCloseRepeatsTheWriteInFlight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.delay = 2 * time.Second
		logged := new(lines)
		b := &flush.Buffer[int]{Max: 4, PageMax: 4, Write: s.write}
		l := flush.Start(flush.Config{Interval: time.Second, Logger: logged.logger()}, b.Flush)
		add(b, 1, 3)
		pass(1500 * time.Millisecond)
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
		s.wants(t, []int{1, 2, 3})
		if took := time.Since(s.start); took != 3500*time.Millisecond {
			t.Errorf("closed after %s", took)
		}
		if text := logged.next(); text != "" {
			t.Errorf("logged %s", text)
		}
		l.Stop() // changes nothing
	})
}

func TestCloseOfADeadStoreEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.delay = time.Hour
		b := &flush.Buffer[int]{Max: 4, PageMax: 4, Write: s.write}
		l := flush.Start(flush.Config{Interval: time.Second, Timeout: time.Minute, Logger: new(lines).logger()}, b.Flush)
		add(b, 1, 3)
		pass(2 * time.Second) // a write is in flight
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := l.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close = %v, want that its time is over", err)
		}
		if took := time.Since(s.start); took != 7*time.Second {
			t.Errorf("closed after %s, want 7s", took)
		}
		if rows := b.Drain(); len(rows) != 3 {
			t.Errorf("%d rows are left, want 3", len(rows))
		}
	})
}
