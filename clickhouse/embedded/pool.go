package embedded

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// maxWaiting is the maximum number of requests that wait for a connection of one pool. Further requests are rejected.
const maxWaiting = 1024

// pool is a pool of connections. It reuses idle connections for requests with the same session. It is safe for concurrent use.
type pool struct {
	engine  *engine
	slots   chan struct{} // one element per connection in use
	wait    time.Duration // maximum wait of get
	waiting atomic.Int64

	mu     sync.Mutex
	idle   []*libraryConn // longest idle first
	closed bool
}

func newPool(e *engine, size int, wait time.Duration) *pool {
	return &pool{engine: e, slots: make(chan struct{}, size), wait: wait}
}

var errPoolClosed = errors.New("server is shutting down")

// get returns a connection with session s. It waits up to p.wait for a slot. The caller returns the connection with put.
func (p *pool) get(ctx context.Context, s session) (*libraryConn, error) {
	if err := p.acquire(ctx); err != nil {
		return nil, err
	}
	c, surplus, err := p.pick(s)
	if surplus != nil {
		surplus.close()
	}
	if c == nil && err == nil {
		c, err = p.engine.open(s)
	}
	if err != nil {
		<-p.slots
		return nil, err
	}
	return c, nil
}

// acquire takes a slot or returns an exception if none is free in time.
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

// pick removes an idle connection with session s from the pool. Without one, it returns a surplus connection that the caller closes
// if a new connection would exceed the size of the pool.
func (p *pool) pick(s session) (match, surplus *libraryConn, err error) {
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

// put returns a connection to the pool. It closes the connection if clean is false: its session may have changed.
func (p *pool) put(c *libraryConn, clean bool) {
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

// close makes get fail, closes the idle connections and waits until all others are returned or ctx ends. put closes those.
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
