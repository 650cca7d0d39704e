package embedded

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestSlotsAreSharedFairly has one analyst fill all slots and the queue before another comes. Slots that become free go to the other one until
// both run the same number.
func TestSlotsAreSharedFairly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate(4, time.Minute)
		var leave []func()
		var order []string
		enter := func(name string, most int) {
			go func() {
				l, err := g.enter(t.Context(), name, most)
				if err != nil {
					t.Error(err)
					return
				}
				leave, order = append(leave, l), append(order, name)
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
		want := []string{"greedy", "greedy", "greedy", "greedy", "modest", "modest", "greedy", "greedy", "modest", "greedy", "greedy", "greedy", "greedy"}
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
		leave, err := g.enter(t.Context(), "a", 1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.enter(t.Context(), "a", 1); err == nil {
			t.Error("a second statement of an analyst who may run one")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := g.enter(ctx, "a", 1); err == nil {
			t.Error("a statement runs after its end")
		}
		other, err := g.enter(t.Context(), "b", 1)
		if err != nil {
			t.Fatal(err)
		}
		other()
		leave()
		if g.used != 0 || len(g.waiting) != 0 {
			t.Errorf("%d slots in use, %d wait", g.used, len(g.waiting))
		}
	})
}
