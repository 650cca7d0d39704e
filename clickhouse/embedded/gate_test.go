package embedded

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestSlotsAreSharedFairly has one analyst fill all slots and the queue before another comes. Slots that become free go to the other one
// until both run the same number.
func TestSlotsAreSharedFairly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate(4, time.Minute)
		var leave []func()
		var order []string
		enter := func(name string, most int) {
			go func() {
				l, err := g.enter(name, most)
				if err == nil {
					err = l.slot(t.Context())
				}
				if err != nil {
					t.Error(err)
					return
				}
				leave, order = append(leave, l.leave), append(order, name)
			}()
			synctest.Wait()
		}
		for range 10 {
			enter("greedy", 99)
		}
		for range 3 {
			enter("modest", 99)
		}
		for i := 0; i < 13; i++ { // the oldest ends first
			leave[i]()
			synctest.Wait()
		}
		want := []string{"greedy", "greedy", "greedy", "greedy", "modest", "modest", "greedy", "greedy", "modest", "greedy", "greedy",
			"greedy", "greedy"}
		if !slices.Equal(order, want) {
			t.Errorf("order %v, want %v", order, want)
		}
		if g.used != 0 || len(g.running) != 0 || len(g.waiting) != 0 {
			t.Errorf("%d slots are in use by %v, %d wait", g.used, g.running, len(g.waiting))
		}
	})
}

// TestStatementsWaitOnlySoLong checks the limit of one analyst, the end of the wait and of the caller's context.
func TestStatementsWaitOnlySoLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate(4, time.Minute)
		f := func(ctx context.Context, name string, wants bool) *ticket {
			t.Helper()
			l, err := g.enter(name, 1)
			if err != nil {
				t.Fatal(err)
			}
			if err := l.slot(ctx); (err == nil) != wants {
				t.Errorf("%s: %v", name, err)
			}
			return l
		}
		first := f(t.Context(), "a", true)
		f(t.Context(), "a", false).leave() // a may run one
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		f(ctx, "a", false).leave()
		f(t.Context(), "b", true).leave()
		first.leave()
		if g.used != 0 || len(g.waiting) != 0 || len(g.running) != 0 || len(g.requests) != 0 {
			t.Errorf("%d slots in use, %d wait, %v run, %v requests", g.used, len(g.waiting), g.running, g.requests)
		}
	})
}

// TestRequestsOfOneAnalystAreBounded has an analyst who may run one statement send 1,100. Those above the bound are refused at once, and
// another analyst gets a free slot.
func TestRequestsOfOneAnalystAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate(4, time.Minute)
		refused := 0
		var waiting []*ticket
		for range 1100 {
			l, err := g.enter("greedy", 1)
			if err != nil {
				refused++
				continue
			}
			waiting = append(waiting, l)
			go func() { _ = l.slot(t.Context()) }()
		}
		synctest.Wait()
		if refused != 1100-1-waitingMax {
			t.Errorf("%d are refused", refused)
		}
		l, err := g.enter("modest", 1)
		if err == nil {
			err = l.slot(t.Context())
		}
		if err != nil {
			t.Fatalf("another analyst: %v", err)
		}
		l.leave()
		for _, l := range waiting {
			l.leave()
			synctest.Wait()
		}
	})
}
