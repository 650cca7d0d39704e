package coalesce

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// store answers with the length of each key after one second, and records the queries.
type store struct {
	mu        sync.Mutex
	questions []int // keys of each
	at        []time.Time
	now, most int // in flight
	err       error
}

func (s *store) ask(_ context.Context, keys []string) (map[string]int, error) {
	s.mu.Lock()
	s.questions, s.at = append(s.questions, len(keys)), append(s.at, time.Now())
	s.now++
	s.most = max(s.most, s.now)
	s.mu.Unlock()
	time.Sleep(time.Second)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now--
	found := make(map[string]int)
	for _, key := range keys {
		if key != "nothing" {
			found[key] = len(key)
		}
	}
	return found, s.err
}

func TestCrowdSharesQuestions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := new(store)
		g := New(Config[string, int]{Query: s.ask, KeysMax: 100, QueriesMax: 2})
		var asking sync.WaitGroup
		for i := range 1000 {
			for range 2 {
				asking.Go(func() {
					key := fmt.Sprintf("key-%d", i)
					if v, found, err := g.Get(t.Context(), key); err != nil || !found || v != len(key) {
						t.Errorf("%s: %d %v %v", key, v, found, err)
					}
				})
			}
		}
		asking.Wait()
		synctest.Wait()
		asked := 0
		for _, n := range s.questions {
			asked += n
		}
		// Keys of the first two queries are queried again for callers that came later.
		if asked < 1000 || asked > 1200 || len(s.questions) > 14 || s.most != 2 || slices.Max(s.questions) != 100 {
			t.Errorf("%d keys in questions of %v, %d at once", asked, s.questions, s.most)
		}
		if g.querying != 0 || g.Waiting() != 0 {
			t.Errorf("afterwards %d ask and %d wait", g.querying, g.Waiting())
		}
	})
}

func TestLoneKeyIsAskedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := new(store)
		g := New(Config[string, int]{Query: s.ask, QueriesMax: 100, Pause: 10 * time.Second})
		began := time.Now()
		if _, found, err := g.Get(t.Context(), "nothing"); found || err != nil || time.Since(began) != time.Second {
			t.Fatalf("lone key: %v %v after %s", found, err, time.Since(began))
		}
		var asking sync.WaitGroup
		for i := range 60 { // one a second
			asking.Go(func() {
				if _, _, err := g.Get(t.Context(), fmt.Sprint(i)); err != nil {
					t.Error(err)
				}
			})
			time.Sleep(time.Second)
		}
		asking.Wait()
		for i := range s.at[1:] {
			if between := s.at[i+1].Sub(s.at[i]); between < 10*time.Second {
				t.Errorf("question %d began %s after the one before", i+1, between)
			}
		}
		if len(s.questions) > 8 {
			t.Errorf("questions of %v keys", s.questions)
		}
	})
}

func TestFailureBusyAndImpatience(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{err: errors.New("away")}
		g := New(Config[string, int]{Query: s.ask, QueriesMax: 1, WaitingMax: 1})
		if _, _, err := g.Get(t.Context(), "a"); !errors.Is(err, s.err) {
			t.Errorf("the store's error is %v", err)
		}
		s.err = nil
		go g.Get(t.Context(), "b")
		synctest.Wait() // b is asked for
		go g.Get(t.Context(), "c")
		synctest.Wait() // c waits
		if _, _, err := g.Get(t.Context(), "d"); !errors.Is(err, ErrBusy) {
			t.Errorf("one too many: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, _, err := g.Get(ctx, "c"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("impatient caller: %v", err)
		}
		if v, found, err := g.Get(t.Context(), "c"); v != 1 || !found || err != nil {
			t.Errorf("c: %d %v %v", v, found, err)
		}
	})
}
