package embedded

import (
	"context"
	"slices"
	"sync"
	"time"
)

// waitingMax is the maximum number of requests of one analyst that are read or wait, besides those that run.
const waitingMax = 64

// gate shares the slots of analysts fairly: a free slot goes to the waiting statement whose analyst runs the fewest, the oldest first.
type gate struct {
	size int
	wait time.Duration // maximum wait for a slot

	mu       sync.Mutex
	used     int
	requests map[string]int // by name of the analyst: requests that are read, wait, run or are answered
	running  map[string]int // by name of the analyst: statements that run
	waiting  []*ticket      // oldest first
}

// ticket is a request of an analyst.
type ticket struct {
	gate    *gate
	name    string
	max     int           // statements of the analyst at once
	granted chan struct{} // closed when the statement has a slot, nil before it waits
}

func newGate(size int, wait time.Duration) *gate {
	return &gate{size: size, wait: wait, requests: make(map[string]int), running: make(map[string]int)}
}

// enter counts a request before anything of it is read. max is how many statements the analyst may run at once. The caller calls leave.
func (g *gate) enter(name string, max int) (*ticket, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	most := min(max, g.size) + waitingMax
	if g.requests[name] >= most {
		return nil, newException(codeTooManyQueries, "Too many simultaneous queries: %d of %s run or wait", most, name)
	}
	g.requests[name]++
	return &ticket{gate: g, name: name, max: max}, nil
}

// leave ends the request.
func (t *ticket) leave() {
	t.release()
	t.gate.mu.Lock()
	defer t.gate.mu.Unlock()
	if t.gate.requests[t.name]--; t.gate.requests[t.name] == 0 {
		delete(t.gate.requests, t.name)
	}
}

// release frees the slot of the request, if it has one or waits for one.
func (t *ticket) release() {
	g := t.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if t.granted == nil {
		return
	}
	t.granted = nil
	if i := slices.Index(g.waiting, t); i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
		return
	}
	g.used--
	if g.running[t.name]--; g.running[t.name] == 0 {
		delete(g.running, t.name)
	}
	g.grant()
}

// slot waits for a slot, which the request has until release. It is called at most once.
func (t *ticket) slot(ctx context.Context) error {
	g := t.gate
	g.mu.Lock()
	t.granted = make(chan struct{})
	g.waiting = append(g.waiting, t)
	g.grant()
	g.mu.Unlock()
	select {
	case <-t.granted:
		return nil
	default:
	}
	deadline := time.NewTimer(g.wait)
	defer deadline.Stop()
	select {
	case <-t.granted:
		return nil
	case <-deadline.C:
		return newException(codeTooManyQueries,
			"Too many simultaneous queries: no slot was free for %s, of %d for all analysts and %d for %s",
			g.wait, g.size, min(t.max, g.size), t.name)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
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
