package embedded

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// maxWaiting bounds the requests that wait for a connection of one pool. More are turned away at once.
const maxWaiting = 1024

// pool lends connections of one user. Idle ones are kept for requests that want the same session.
type pool struct {
	engine         *engine
	initial, final string        // settings of each connection, before and after those of the session
	slots          chan struct{} // one element for each connection lent
	wait           time.Duration // limit for get
	waiting        atomic.Int64

	mu     sync.Mutex
	idle   []*conn // longest idle first
	closed bool
}

func newPool(e *engine, size int, wait time.Duration, initial, final string) *pool {
	return &pool{engine: e, initial: initial, final: final, slots: make(chan struct{}, size), wait: wait}
}

var errPoolClosed = errors.New("server is shutting down")

// get lends a connection, waiting for one if need be. The caller gives it back with put.
func (p *pool) get(ctx context.Context, s session) (*conn, error) {
	if err := p.acquire(ctx); err != nil {
		return nil, err
	}
	c, surplus, err := p.pick(s)
	if surplus != nil {
		surplus.close()
	}
	if c == nil && err == nil {
		c, err = p.engine.open(s, p.initial, p.final)
	}
	if err != nil {
		<-p.slots
		return nil, err
	}
	return c, nil
}

// acquire takes a slot.
func (p *pool) acquire(ctx context.Context) error {
	select {
	case p.slots <- struct{}{}:
		return nil
	default:
	}
	if p.waiting.Add(1) > maxWaiting {
		p.waiting.Add(-1)
		return newException(codeTooManyQueries, "Too many simultaneous queries: %d run and %d wait", cap(p.slots), maxWaiting)
	}
	defer p.waiting.Add(-1)
	deadline := time.NewTimer(p.wait)
	defer deadline.Stop()
	select {
	case p.slots <- struct{}{}:
		return nil
	case <-deadline.C:
		return newException(codeTooManyQueries, "Too many simultaneous queries: all %d connections were busy for %s", cap(p.slots), p.wait)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// pick takes an idle connection with session s, or one to close because a new one is needed and there may be no more.
func (p *pool) pick(s session) (match, surplus *conn, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, errPoolClosed
	}
	for i, c := range slices.Backward(p.idle) {
		if c.session == s {
			p.idle = slices.Delete(p.idle, i, i+1)
			return c, nil, nil
		}
	}
	if len(p.idle) > 0 && len(p.idle)+len(p.slots) > cap(p.slots) {
		surplus = p.idle[0]
		p.idle = slices.Delete(p.idle, 0, 1)
	}
	return nil, surplus, nil
}

// put takes a connection back. One whose session may have changed is closed instead of kept.
func (p *pool) put(c *conn, clean bool) {
	p.mu.Lock()
	keep := clean && !p.closed
	if keep {
		p.idle = append(p.idle, c)
	}
	p.mu.Unlock()
	if !keep {
		c.close()
	}
	<-p.slots
}

// close waits until all connections are back, or ctx ends, and closes them. From then on get fails.
func (p *pool) close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	for _, c := range idle {
		c.close()
	}
	for range cap(p.slots) {
		select {
		case p.slots <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
