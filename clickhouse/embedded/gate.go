package embedded

import (
	"context"
	"slices"
	"sync"
	"time"
)

// gate shares the slots of analysts fairly: a free slot goes to the waiting statement whose analyst runs the fewest, the oldest first.
type gate struct {
	size int
	wait time.Duration // maximum wait of enter

	mu      sync.Mutex
	used    int
	running map[string]int // statements by name of the analyst
	waiting []*ticket      // oldest first
}

// ticket is a statement that waits for a slot.
type ticket struct {
	name    string
	max     int           // statements of the analyst at once
	granted chan struct{} // closed when the statement has a slot
}

func newGate(size int, wait time.Duration) *gate {
	return &gate{size: size, wait: wait, running: make(map[string]int)}
}

// enter waits for a slot and returns the function that gives it back. max is how many statements the analyst may run at once.
func (g *gate) enter(ctx context.Context, name string, max int) (leave func(), err error) {
	g.mu.Lock()
	if len(g.waiting) >= maxWaiting {
		g.mu.Unlock()
		return nil, newException(codeTooManyQueries, "Too many simultaneous queries: %d run and %d wait", g.size, maxWaiting)
	}
	t := &ticket{name, max, make(chan struct{})}
	g.waiting = append(g.waiting, t)
	g.grant()
	g.mu.Unlock()
	leave = func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.used--
		if g.running[name]--; g.running[name] == 0 {
			delete(g.running, name)
		}
		g.grant()
	}
	select {
	case <-t.granted:
		return leave, nil
	default:
	}
	deadline := time.NewTimer(g.wait)
	defer deadline.Stop()
	select {
	case <-t.granted:
		return leave, nil
	case <-deadline.C:
		err = newException(codeTooManyQueries, "Too many simultaneous queries: no slot was free for %s, of %d for all analysts and %d for %s", g.wait, g.size, min(max, g.size), name)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	g.mu.Lock()
	i := slices.Index(g.waiting, t)
	if i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
	}
	g.mu.Unlock()
	if i < 0 { // granted at the last moment
		leave()
	}
	return nil, err
}

// grant gives free slots to waiting statements. The caller holds g.mu.
func (g *gate) grant() {
	for g.used < g.size {
		best := -1
		for i, t := range g.waiting {
			if n := g.running[t.name]; n < t.max && (best < 0 || n < g.running[g.waiting[best].name]) {
				best = i
			}
		}
		if best < 0 {
			return
		}
		t := g.waiting[best]
		g.waiting = slices.Delete(g.waiting, best, best+1)
		g.used++
		g.running[t.name]++
		close(t.granted)
	}
}
